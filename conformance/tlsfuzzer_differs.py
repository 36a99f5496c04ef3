"""tlsfuzzer's conversations that fare otherwise here, by the reason; the names are tlsfuzzer's.

Each group has its reason, the layer of records that it holds for, and patterns by script. Those
that begin with `?` are for some of the conversations that they match.
"""

OLD_HELLO = (
    "the alert is handshake_failure in place of protocol_version (RFC 5246, E.1): these hellos "
    "have no signature_algorithms, which rustls looks for before it looks at the version")

SILENT = ("a defect: the connection is closed without the alert unexpected_message: rustls sends "
          "none for a message out of its turn")

_OLD = ("the script offers TLS 1.1 or older, or only suites of RSA's exchange, CBC, RC4, or PSK, "
        "which the server does not have: it refuses")
_NEWER = "feature that is not there: renegotiation; each attempt is refused"
_GROUP = "feature that is not there: the groups X448, P-521 and FFDHE"
_LONG = ("the hello is longer than 16 KiB, which none has to be: it is refused by record_overflow")
_ALERT = "the alert is decode_error in place of the one that the script expects; both are fatal"
_IDS = "feature that is not there: sessions by their id; tickets resume them"
_STRICT = ("the script expects a refusal of what RFC 8446 lets a server pass over: groups, schemes "
           "or versions that it does not know")
_PSS = "the script wants a certificate of RSASSA-PSS; the server's is RSA"

KNOWN = [
    (_OLD, "both", {
        "client-compatibility": [f"{number}: *" for number in (
            *range(10, 28), *range(29, 45), 47, 48, 50, 52, 56, 58, 59, 60, 61, 63, 64, 65, 68, 71,
            72, 74, 75, 85, 87, 94, 95, 96, 100, 101, 102, 104, 106, 113, 133, 134, 143)],
        "downgrade-protection": ["TLS 1.3 downgrade check for Protocol (3, 1)",
                                 "TLS 1.3 downgrade check for Protocol (3, 2)"],
        "extended-master-secret-extension": [
            "sanity TLSv1.1", "extended master secret in TLSv1.1", "extended master secret w/DHE"],
        "fallback-scsv": ["FALLBACK - hello TLSv1.1 - *",
                          "FALLBACK - record TLSv1.1 hello TLSv1.1 - *", "sanity - TLSv1.1",
                          "record TLSv1.1 hello TLSv1.1"],
        "resumption-with-wrong-ciphers": [
            "resumption of safe session with NULL cipher", "sanity - aes-256 cipher"],
        "tls13-symetric-ciphers": ["*_CCM_*"],
        "tls13-version-negotiation": ["fallback from TLS 1.8 to 1.1"],
        "x25519": ["default to P-256 when no groups specified", "only * - fallback to DHE",
                   "default to P-256/sha-1 when no extensions specified"],
        "signature-algorithms": ["explicit SHA-1+RSA/ECDSA", "implicit SHA-1 check"],
        "sig-algs-renegotiation-resumption": [
            "rsa+sha1 in signature_algorithms ext",
            "without signature_algorithms and signature_algorithms_cert ext"],
    }),
    (_NEWER, "both", {
        "alpn-negotiation": ["renegotiation*"],
        "extended-master-secret-extension": ["extended master secret with renegotiation",
                                             "renegotiate with*"],
        "interleaved-application-data-and-fragmented-handshakes-in-renegotiation": [
            "Application data inside *"],
        "interleaved-application-data-in-renegotiation": ["Application data before *"],
        "legacy-renegotiation": ["insecure (legacy) renegotiation *", "secure renegotiation *",
                                 "sending both SCSV and renegotiation_info in *"],
        "renegotiation-changed-clienthello": ["drop *", "sanity - renegotiation"],
        "session-ticket-resumption": ["renegotiation with removal of session_ticket ext",
                                      "session resumption with renegotiation"],
        "sig-algs-renegotiation-resumption": ["renegotiation *", "sanity - renegotiation*"],
    }),
    ("the renegotiation is refused by the alert unexpected_message, and not by a warning", "own", {
        "renegotiation-disabled": ["try *"],
    }),
    (_GROUP, "both", {
        "tls13-crfg-curves": ["*x448*"], "tls13-ecdhe-curves": ["*secp521r1*", "*x448*"],
        "x25519": ["*x448 key share*", "sanity - negotiate x448"],
        "tls13-unrecognised-groups": [
            "known group ffdhe2048 and *", "only unknown * + ffdhe2048 in supported_groups"],
        "tls13-obsolete-curves": ["secp521r1 in *", "x448 in *"],
    }),
    (_LONG, "both", {
        "alpn-negotiation": ["16269 byte long array"],
        "client-hello-max-size": ["max client hello"],
        "cve-2016-6309": ["Large ClientHello padding"],
        "large-hello": ["?*"],
        "large-number-of-extensions": ["4095 *", "4096 *", "4097 *", "819* extensions", "16375 *"],
        "record-layer-fragmentation": ["big, needs *", "maximum size*"],
        "signature-algorithms": ["duplicated 23741 *", "duplicated 32744 *", "tolerance 23754 *",
                                 "tolerance 32758 *", "tolerance max *"],
        "tls13-large-number-of-extensions": ["?*"],
        "tls13-record-layer-limits": ["max size of ClientHello msg, with 16167 bytes of padding"],
        "tls13-shuffled-extentions": ["?HRR reversed order of unassigned *"],
        "tls13-signature-algorithms": [f"{word} {count} *" for count in (8130, 23752, 32715)
                                       for word in ("duplicated", "tolerance")] + [
            "8130 invalid schemes", "23752 invalid schemes", "32715 invalid schemes"],
        "tls13-no-unknown-groups": ["long list of unknown (between 4356 and 4611)"],
        "tls13-unrecognised-groups": ["?only unknown *", "?known group secp256r1 and *"],
        "truncating-of-client-hello": ["big pad: *", "huge pad: *", "max pad: *"],
    }),
    (SILENT, "both", {
        "cve-2004-0079": ["* interleaved ClientHello fragment"],
        "interleaved-CKE-with-CCS": ["* interleaved ClientKeyExchange fragment"],
        "invalid-client-hello-w-record-overflow": ["?Client Hello type fuzz to *"],
        "tls13-zero-content-type": ["zero content type*during handshake"],
        "tls13-zero-length-data": ["*interleaved in handshake"],
        "sslv2hello-protocol": ["SSLv2 Client Hello"],
    }),
    ("a defect: a Finished that is longer than a record may be closes the connection without "
     "record_overflow", "both", {
         "tls13-record-layer-limits": ["too big Finished msg, *"],
     }),
    ("one key update each second is taken from a client, and no more", "own", {
        "tls13-keyupdate": ["multiple KeyUpdate messages"],
    }),
    ("several requests for a key are answered by one update, which comes with the next content; "
     "RFC 8446, 4.6.3 allows it", "rustls", {
         "tls13-keyupdate": ["multiple KeyUpdate messages"],
     }),
    ("the update that a client asks for comes with the next content, as RFC 8446, 4.6.3 has it; "
     "the script waits for it before", "both", {
         "tls13-keyupdate": ["app data split, conversation with KeyUpdate msg"],
     }),
    ("content within a key update ends the connection without an alert", "rustls", {
         "tls13-keyupdate": ["*/* fragmented keyupdate msg, appdata between"],
     }),
    ("the alert is decode_error in place of unexpected_message for an alert without content, and "
     "for a record without a type (RFC 8446, 5.4)", "rustls", {
         "tls13-empty-alert": ["empty alert * using application keys"],
         "tls13-zero-content-type": ["zero content type after handshake",
                                     "zero content type*application data",
                                     "zero content type with padding after handshake"],
     }),
    ("the alert is decode_error in place of unexpected_message for an alert without content within "
     "the handshake", "both", {
         "tls13-empty-alert": ["empty alert * using handshake keys"],
     }),
    (_ALERT, "both", {
        "ccs": ["two bytes long CCS"],
        "no-heartbeat": ["heart* in handshake without support in server"],
        "tls13-crfg-curves": ["empty x25519 key share"],
        "x25519": ["empty x25519 key share"],
        "invalid-server-name-extension": ["multiple host_names in SNI, RFC 6066 compliance"],
    }),
    ("the alert is decrypt_error in place of decode_error where Finished has another length; the "
     "longest are refused without one", "both", {
         "tls13-finished": ["?empty - *", "?padding - *", "?truncation - *"],
         "tls13-record-layer-limits": ["max size payload (2**14) of Finished msg, *"],
     }),
    ("the alert is bad_record_mac in place of unexpected_message", "both", {
        "tls13-finished-plaintext": ["Unencrypted Finished message"],
    }),
    ("the alert is handshake_failure in place of missing_extension", "both", {
        "tls13-keyshare-omitted": ["key_share extension omitted"],
    }),
    (_IDS, "both", {
        "alpn-negotiation": ["resumption *"],
        "extended-master-secret-extension": ["EMS with session resume*"],
        "resumption-with-wrong-ciphers": [
            "resumption with cipher from old CH but not selected by server",
            "sanity - session ID resume"],
        "sessionID-resumption": ["session ID resume"],
    }),
    (_STRICT, "both", {
        "tls13-legacy-version": ["version (*"],
        "tls13-obsolete-curves": ["* and secp256r1 in *", "secp256r1 and * in *",
                                  "?* in supported_groups *"],
        "tls13-pkcs-signature": ["rsa_pkcs1_* signature"],
        "tls13-rsa-signatures": ["tls13 signature rsa_pss_pss_*"],
        "tls13-signature-algorithms": ["only legacy sigalgs", "only undefined sigalgs"],
        "tls13-shuffled-extentions": ["HRR reversed order of known extensions"],
        "legacy-renegotiation": ["non-empty initial renegotiation_info extension *"],
    }),
    (_PSS, "both", {"sig-algs": ["rsa_pss_pss_* only"]}),
    ("a second change_cipher_spec is dropped, as RFC 8446, 5 has it; the script wants an alert",
     "both", {"tls13-multiple-ccs-messages": ["*multiple CCS Messages in one TCP packet",
                                              "second CCS before client finished"]}),
    ("rustls drops early data of 16,384 sealed bytes at most; the script's have 17 more, and no "
     "ticket of the server allows any", "both", {
         "tls13-0rtt-garbage": ["handshake with invalid 0-RTT", "*fragmented early data",
                                "handshake with invalid 0-RTT and CCS*"],
     }),
    ("a client without psk_dhe_ke gets no ticket, for it could not use it", "both", {
        "tls13-connection-abort": ["After NewSessionTicket"],
        "tls13-session-resumption": ["session resumption - PSK_ONLY"],
    }),
    ("the script expects a refusal of an extension that a server may pass over", "both", {
        "tls13-certificate-compression": ["duplicated algos", "sending extension in TLS-1.2"],
    }),
    ("an unknown name gets the usual certificate, as long as --tls-strict-names is not set", "both",
     {"invalid-server-name-extension": ["incorrect SNI"]}),
    ("names of a type but host_name are refused; RFC 6066 knows none", "both", {
        "invalid-server-name-extension": ["multiple types in SNI, host_name last"],
    }),
    ("the script's second hello has no groups", "both", {
        "invalid-server-name-extension-resumption": ["session resume with *"],
    }),
    ("with the suite that it is given, the script sends this hello without any", "both", {
        "aes-gcm-nonces": ["aes-256-gcm cipher"],
    }),
    ("ec_point_formats is not sent; RFC 8422, 5.2 takes that for uncompressed points", "both", {
        "point-extension": ["Check if *"],
    }),
    ("the server asks for no new key of the client by itself until a key is worn", "both", {
        "tls13-keyupdate-from-server": ["post-handshake KeyUpdate msg from server"],
    }),
    ("a connection that begins with an alert is closed without one", "both", {
        "ssl-death-alert": ["SSL Death Alert with getting alert"],
    }),
]
