#!/bin/sh
# Builds the newest h2o, which no Debian has: its master, into the folder of contests/peers.sh.
# Some two minutes; needs cmake, ninja, a C compiler and the headers of OpenSSL, zlib and brotli.
#
#     contests/h2o.sh
#
# H2O_COMMIT names another commit than the newest.
set -eu
cd "$(dirname "$0")/.."

peers=${CARGO_TARGET_DIR:-target}/peers
source=$peers/h2o
mkdir -p "$peers/bin"
[ -d "$source" ] || git clone --quiet --filter=blob:none https://github.com/h2o/h2o "$source"
git -C "$source" checkout --quiet "${H2O_COMMIT:-master}"
cmake -S "$source" -B "$source/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DWITH_MRUBY=OFF -DWITH_DTRACE=OFF -DWITH_ZSTD=OFF >"$source/cmake.log"
ninja -C "$source/build" h2o >"$source/ninja.log"
cp "$source/build/h2o" "$peers/bin/h2o"
"$peers/bin/h2o" -v | head -n 2
