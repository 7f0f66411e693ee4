//! Compiles the model that the program calls.

fn main() {
    tfaot_build::Model::new("model.pb").name("net").feed("image=f32[2,16,16,3]").fetch("Identity").compile();
}
