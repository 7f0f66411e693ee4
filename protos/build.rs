//! Generates Rust from the `.proto` texts beside this file; no `protoc` is needed.

fn main() {
    println!("cargo:rerun-if-changed=protos");
    protobuf_codegen::Codegen::new()
        .pure()
        .cargo_out_dir("protos")
        .include("protos")
        .inputs(["protos/tensorflow.proto", "protos/tf2xla.proto"])
        .run_from_script();
    protobuf_codegen::Codegen::new()
        .pure()
        .cargo_out_dir("protos_hlo")
        .include("protos")
        .inputs(["protos/xla_data.proto", "protos/hlo.proto"])
        .run_from_script();
}
