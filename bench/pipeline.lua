-- Sixteen requests in one write, for wrk.
local together

init = function()
    local requests = {}
    for i = 1, 16 do
        requests[i] = wrk.format()
    end
    together = table.concat(requests)
end

request = function()
    return together
end
