//! Ends a build for another system than Linux with one sentence. (`compile_error!` would stand
//! among hundreds of errors about what only Linux has.)

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if system != "linux" {
        println!(
            "cargo::error=Gustnado runs on Linux only: on a Mac or on Windows, run it in a \
             container or a virtual machine"
        );
    }
}
