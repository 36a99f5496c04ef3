#!/bin/bash -eu
# Builds the targets as OSS-Fuzz wants them: programs, and a corpus for each, in $OUT.
cd "$SRC/gustnado"
cargo fuzz build -O --debug-assertions
built=fuzz/target/x86_64-unknown-linux-gnu/release
for target in $(cargo fuzz list); do
    cp "$built/$target" "$OUT/"
    if [ -d "fuzz/corpus/$target" ]; then
        zip -qj "$OUT/${target}_seed_corpus.zip" "fuzz/corpus/$target"/*
    fi
done
