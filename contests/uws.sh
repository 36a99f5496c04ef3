#!/bin/sh
# Builds contests/websocket/uws.cpp with the newest uWebSockets, into the folder of
# contests/peers.sh. A minute; needs git, make and a C++ compiler.
#
#     contests/uws.sh
#
# UWS_COMMIT and USOCKETS_COMMIT name other commits than the newest.
set -eu
cd "$(dirname "$0")/.."

peers=${CARGO_TARGET_DIR:-target}/peers
source=$peers/uws
mkdir -p "$peers/bin" "$source"

get() {
    [ -d "$source/$1" ] || git clone --quiet --filter=blob:none \
        "https://github.com/uNetworking/$1" "$source/$1"
    git -C "$source/$1" checkout --quiet "$2"
}

get uWebSockets "${UWS_COMMIT:-master}"
get uSockets "${USOCKETS_COMMIT:-master}"
CFLAGS="-O3 -march=native" make --silent -C "$source/uSockets"
c++ -std=c++20 -O3 -march=native -flto=auto -DUWS_NO_ZLIB -I "$source/uWebSockets/src" \
    -I "$source/uSockets/src" contests/websocket/uws.cpp "$source/uSockets/uSockets.a" \
    -Wno-stringop-overflow -o "$peers/bin/uws"
commit=$(git -C "$source/uWebSockets" log -1 --format='%h of %cs')
printf 'uWebSockets %s\n' "$commit" >"$peers/bin/uws.version"
cat "$peers/bin/uws.version"
