wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"id":7,"name":"Anna"}'
