"""gunicorn's raw requests that fare otherwise here, each with what becomes of it and the reason.

What a valid one becomes is a status, or what the application finds otherwise; an invalid one is
`served`, or the server `waits` for the rest of it. A case that fares in another way fails."""

VERSION = "27.0.1"

_VALID = [
    (400, "a fragment is no part of a request's target (RFC 9112, 3.2)", ["005"]),
    (400, "quotes have to be written %22 in a target (RFC 3986, 2)", ["014"]),
    (431, "--limit-head-bytes is 16k; gunicorn's own limit is raised for the case", ["024"]),
    (501, "no coding but chunked is known, and none is passed on (RFC 9112, 6.1)", [
        "025", "025_line", "029", "030", "rfc9112_smuggle_gzip_chunked_01",
        "rfc9112_smuggle_te_identity_chunked_01"]),
    ("differs in body", "gunicorn's file says '' for the empty body, which is no bytes", ["026"]),
    (400, "its second request, by HTTP/1.1 after one by 1.0, has no Host (RFC 9112, 3.2)", ["022"]),
    (400, "a blank before the colon is refused (RFC 9112, 5.1); gunicorn has a flag", ["028"]),
    ("differs in method", "methods are not made capitals; gunicorn has a flag", ["031compat"]),
    ("waits", "the file has 8,599 bytes of the 17,914 that it announces", ["099"]),
    (400, "folded lines are refused (RFC 9112, 5.2); gunicorn has a flag", [
        "compat_obs_fold", "compat_obs_fold_huge"]),
    (400, "with --proxy-protocol every connection has to begin with that header", ["pp_03"]),
    (400, "a name and a password in a target are refused (RFC 9110, 4.2.4)", [
        "rfc9112_target_absolute_userinfo_01"]),
    (405, "CONNECT is for proxies, and does not reach an application", [
        "rfc9112_target_authority_connect_01", "rfc9112_target_authority_ipv6_01"]),
]

_LIMIT = ("a limit of gunicorn's, of each line or field: here is one of the whole head, 16k, and "
          "of the number of fields, 100")

_INVALID = [
    ("served", "any token of up to 64 bytes is a method (RFC 9110, 9.1), `-bl` too", ["003c"]),
    ("waits", "the request is not complete; gunicorn's case ends the connection there", [
        "001", "rfc9112_chunked_missing_final_crlf_01"]),
    ("served", _LIMIT, ["006", "007", "008", "010", "011", "012", "017",
                        "limit_header_default_01"]),
    ("served", "X-Forwarded-Ssl is not looked at, so it cannot contradict", ["019"]),
    ("served", "names with `_` are not refused, but do not reach the application", [
        "040", "chunked_07"]),
    ("served", "a second Content-Type is the application's to judge", ["041"]),
    ("served", "trailers that may not be there are dropped (RFC 9110, 6.5.1)", [
        "rfc9110_trailer_forbidden_cl_01", "rfc9110_trailer_forbidden_host_01",
        "rfc9110_trailer_forbidden_te_01"]),
    ("served", "two empty lines before a request are passed over (RFC 9112, 2.2: one at least)", [
        "rfc9112_leading_crlf_02"]),
]


def _by_name(groups):
    return {name: (fares, reason) for fares, reason, names in groups for name in names}


VALID, INVALID = _by_name(_VALID), _by_name(_INVALID)
