//! Lists the devices that models can run on, and what this build is made of.
//!
//! `cargo run --example 01_devices`

use ggml_llama::{Result, build_info, devices, system_info};

fn main() -> Result<()> {
    for device in devices()? {
        let props = device.props()?;
        println!(
            "{}: {} ({:?}, {} MiB of {} MiB free)",
            props.name,
            props.description,
            props.kind,
            props.memory.free >> 20,
            props.memory.total >> 20
        );
    }
    let info = build_info();
    println!("llama.cpp {}, ggml {}, built for {}", info.llama_version, info.ggml_version, info.target);
    println!("source: {} ({})", info.source, info.source_hash);
    println!("system: {}", system_info()?);
    Ok(())
}
