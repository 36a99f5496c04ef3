#!/bin/sh
# Builds static-web-server, which no Debian has, into the folder of contests/peers.sh. Some minutes;
# needs cargo.
#
#     contests/static-web-server.sh
#
# SWS_VERSION names another version than the newest release.
set -eu
cd "$(dirname "$0")/.."

peers=${CARGO_TARGET_DIR:-target}/peers
mkdir -p "$peers/bin"
cargo install --quiet --locked --root "$peers" --target-dir "$peers/static-web-server" \
    ${SWS_VERSION:+--version "$SWS_VERSION"} static-web-server
"$peers/bin/static-web-server" --version
