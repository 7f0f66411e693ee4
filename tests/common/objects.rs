//! Objects as their users have them: beside headers in a folder, and called by compiled programs.
use std::path::Path;
use tfaot::compile::Compiled;
use tfaot::package::{cpp, header};
use tfaot::target::Target;

/// Writes the object and the headers of a model that is called `m`.
pub fn write(made: &Compiled, folder: &Path) {
    let targets: Vec<&Target> = made.bundle.variants.iter().map(|v| &v.1).collect();
    let face = &made.bundle.face;
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).expect("written");
    put("m.o", &made.object.content.to_bytes());
    put("m.h", header::header(face, &targets).as_bytes());
    put("m.hpp", cpp::header(face, &cpp::ClassName::of_model("m")).as_bytes());
}
