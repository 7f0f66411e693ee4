//! Models in other people's builds: the projects of `examples/`, built as they are and run.
use crate::common::{path, program, said};
use std::path::Path;
use std::process::Command;

/// What each program prints: the probabilities of an image of equal pixels, a line for each of the batch.
const LINE: &str = "0.12184 0.09410 0.03850 0.18453 0.11917 0.03936 0.05792 0.13783 0.13780 0.06895";

/// Runs a line of shell in `folder` with `tfaot` on PATH; what it printed.
fn shell(line: &str, folder: &Path) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_tfaot")).parent().expect("it is in a folder");
    let search = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh").args(["-ec", line]).current_dir(folder).env("PATH", search).output();
    let output = output.expect("there is a shell");
    assert!(output.status.success(), "{line}\n{}", said(&output));
    said(&output)
}

/// A folder with `examples`, and the graph as `model.pb`.
fn scene() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a scratch folder");
    shell(&format!("cp -r '{}' .", path("examples").display()), folder.path());
    std::fs::copy(path("testdata/graphs/conv_net/graph.pb"), folder.path().join("model.pb")).expect("copied");
    folder
}

fn answers(text: &str) {
    assert_eq!(text.lines().filter(|l| l.trim() == LINE).count(), 2, "{text}");
}

#[test]
fn cmake_compiles_a_model_and_again_when_it_changes() {
    if program(&["cmake"]).is_none() || program(&["gcc"]).is_none() {
        return;
    }
    let folder = scene();
    let config = path("cmake");
    let configure = format!("cmake -S examples/cmake -B b -Dtfaot_DIR='{}' -DGRAPH=$PWD/model.pb", config.display());
    shell(&configure, folder.path());
    answers(&shell("cmake --build b && b/classify", folder.path()));
    let idle = shell("cmake --build b", folder.path());
    assert!(!idle.contains("Compiling the model"), "{idle}");
    shell("touch -d '+1 minute' model.pb", folder.path());
    let again = shell("cmake --build b", folder.path());
    assert!(again.contains("Compiling the model"), "{again}");
}

/// The project of docs/cmake.md that has several signatures, and weights in a file.
#[test]
fn cmake_compiles_several_signatures_and_weights_of_their_own() {
    if program(&["cmake"]).is_none() || program(&["gcc"]).is_none() {
        return;
    }
    let folder = scene();
    let page = std::fs::read_to_string(path("docs/cmake.md")).expect("the page is there");
    let blocks = page.split("```cmake\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let lines = blocks.filter(|block| block.contains("WEIGHTS_FILE")).collect::<String>();
    let project = format!(
        "cmake_minimum_required(VERSION 3.20)\nproject(several C)\nfind_package(tfaot 0.1 REQUIRED)\n{}",
        lines.replace("training/", "examples/training/")
    );
    std::fs::write(folder.path().join("CMakeLists.txt"), project).expect("written");
    let main = std::fs::read_to_string(folder.path().join("examples/main.c")).expect("it is there");
    let read = "static _Alignas(NET_WEIGHTS_ALIGN) unsigned char weights[NET_WEIGHTS_BYTES];\n\nint main(void) {\n  \
                FILE *file = fopen(WEIGHTS, \"rb\");\n  \
                if (!file || fread(weights, 1, sizeof weights, file) != sizeof weights || fclose(file)) return 2;\n";
    let main = main.replace("int main(void) {\n", read).replace("&results, workspace", "&results, weights, workspace");
    std::fs::write(folder.path().join("classify.c"), main).expect("written");
    shell(&format!("cmake -S . -B b -Dtfaot_DIR='{}'", path("cmake").display()), folder.path());
    let printed = shell("cmake --build b && b/train && b/classify", folder.path());
    assert!(printed.contains("of 32 right"), "{printed}");
    answers(&printed);
}

/// Projects that ask for this series are served; others are told which version is here.
#[test]
fn cmake_is_told_the_version() {
    if program(&["cmake"]).is_none() {
        return;
    }
    let (folder, version) = (scene(), env!("CARGO_PKG_VERSION"));
    let series = version.rsplit_once('.').map_or(version, |(series, _)| series);
    let asked = |words: &str| {
        let project =
            format!("cmake_minimum_required(VERSION 3.20)\nproject(asks NONE)\nfind_package(tfaot {words})\n");
        std::fs::write(folder.path().join("CMakeLists.txt"), format!("{project}message(\"found ${{tfaot_FOUND}}\")"))
            .expect("written");
        shell(&format!("cmake -S . -B b --fresh -Dtfaot_DIR='{}' 2>&1", path("cmake").display()), folder.path())
    };
    for served in [version, series, ""] {
        assert!(asked(served).contains("found 1"), "{served}");
    }
    for other in ["0.0", "1.0", &format!("{series}.99")] {
        let printed = asked(other);
        assert!(printed.contains("found 0") && printed.contains(&format!("version: {version}")), "{other}: {printed}");
    }
}

#[test]
fn meson_compiles_a_model() {
    if program(&["meson"]).is_none() || program(&["ninja"]).is_none() {
        return;
    }
    let folder = scene();
    shell("meson setup b examples/meson -Dgraph=$PWD/model.pb && meson compile -C b", folder.path());
    answers(&shell("b/classify", folder.path()));
}

/// The rule takes tfcompile's attributes. Rules of languages, which Bazel would download, are Debian's, and for C++ Bazel's own.
#[test]
fn bazel_compiles_a_model() {
    if program(&["bazel"]).is_none() || program(&["g++"]).is_none() {
        return;
    }
    let folder = scene();
    shell(
        &format!("cp -r '{}' examples/bazel/tfaot && cp model.pb examples/bazel", path("bazel").display()),
        folder.path(),
    );
    let native = ["library", "binary", "test", "import", "toolchain", "toolchain_suite"].map(|n| format!("cc_{n}"));
    let rules: String = native.iter().map(|n| format!("{n} = native.{n}\n")).collect();
    let cc = folder.path().join("rules_cc/cc");
    std::fs::create_dir_all(&cc).expect("made");
    std::fs::write(folder.path().join("rules_cc/WORKSPACE"), "").expect("written");
    std::fs::write(cc.join("BUILD"), "").expect("written");
    let more = "objc_library = native.objc_library\nfdo_profile = native.fdo_profile\n";
    std::fs::write(cc.join("defs.bzl"), format!("{rules}{more}")).expect("written");
    let rules = [
        ("cc", "$PWD/../../rules_cc"),
        ("java", "/usr/share/bazel/rules/java"),
        ("proto", "/usr/share/bazel/rules/proto"),
    ];
    let instead: Vec<String> = rules.iter().map(|(n, at)| format!("--override_repository=rules_{n}={at}")).collect();
    let instead = instead.join(" ");
    let bazel = "bazel --batch --output_user_root=$PWD/../../of_bazel";
    let build = format!("cd examples/bazel && {bazel} build {instead} //:classify 2>&1");
    shell(&build, folder.path());
    answers(&shell("examples/bazel/bazel-bin/classify", folder.path()));
    shell("chmod -R u+w of_bazel", folder.path());
}

/// The crate for build scripts: a program in safe Rust calls the model; what the model is made of is watched.
#[test]
fn cargo_compiles_a_model() {
    if program(&["cc"]).is_none() {
        return;
    }
    let folder = scene();
    shell(&format!("cp -r '{}' .", path("crates").display()), folder.path());
    shell("cp model.pb examples/rust", folder.path());
    let cargo = env!("CARGO");
    answers(&shell(&format!("cd examples/rust && '{cargo}' run --quiet --offline"), folder.path()));
    let run = format!("cd examples/rust && '{cargo}' run --offline 2>&1");
    assert!(!shell(&run, folder.path()).contains("Compiling classify"), "nothing has changed");
    shell("touch -d '+1 minute' examples/rust/model.pb", folder.path());
    assert!(shell(&run, folder.path()).contains("Compiling classify"), "the model has");
    shell(&format!("cd crates/tfaot-build && '{cargo}' test --quiet --offline --lib"), folder.path());
}

/// Sizes that vary are said with a call; what has not the room for them is refused before it.
#[test]
fn rust_calls_a_model_of_any_batch() {
    if program(&["cc"]).is_none() {
        return;
    }
    let folder = scene();
    let feed = "--feed 'image=f32[n<=4,16,16,3]' --fetch Identity";
    shell(&format!("tfaot compile model.pb -o . --name net {feed} --emit archive,rust"), folder.path());
    let text = r#"
mod net { include!("net.rs"); }

fn main() {
    let (mut model, mut sizes) = (net::Net::new(), net::Sizes { n: 2 });
    let mut probabilities = [0.0; 20];
    model.run(&mut sizes, &[0.5; 2 * 768], &mut probabilities).expect("two images");
    for image in probabilities.chunks(10) {
        println!("{}", image.iter().map(|p| format!("{p:.5}")).collect::<Vec<_>>().join(" "));
    }
    let short = model.run(&mut sizes, &[0.5; 2 * 768], &mut probabilities[1..]).unwrap_err();
    let many = model.run(&mut net::Sizes { n: 5 }, &[0.5; 5 * 768], &mut [0.0; 50]).unwrap_err();
    let none = model.run(&mut net::Sizes { n: -1 }, &[], &mut []).unwrap_err();
    println!("{short}; {many}; {none}");
}
"#;
    std::fs::write(folder.path().join("main.rs"), text).expect("written");
    let rustc = std::path::Path::new(env!("CARGO")).with_file_name("rustc");
    let line = format!("'{}' --edition 2024 -D warnings main.rs -L . -l static=net && ./main", rustc.display());
    let printed = shell(&line, folder.path());
    answers(&printed);
    let bounds = "a size is outside of its bounds";
    assert!(printed.contains(&format!("an array is shorter than the sizes say; {bounds}; {bounds}")), "{printed}");
}

#[test]
fn rust_is_for_one_function() {
    let folder = scene();
    let line = "tfaot compile examples/training/model --signature all --name net -o . --emit rust 2>&1 || true";
    assert!(shell(line, folder.path()).contains("`--emit rust` is for a model of one function"));
}

#[test]
fn fortran_calls_a_model() {
    if program(&["gfortran"]).is_none() {
        return;
    }
    let folder = scene();
    shell("tfaot compile model.pb -o . --name net --emit obj,fortran", folder.path());
    let strict = "-std=f2008 -Wall -Wextra -Werror -fcheck=all";
    shell(&format!("gfortran {strict} net.f90 examples/fortran/main.f90 net.o -o classify"), folder.path());
    answers(&shell("./classify", folder.path()));
    // the same with its weights in a file
    shell("tfaot compile model.pb -o . --name net --emit obj,fortran --weights-file", folder.path());
    let program = std::fs::read_to_string(folder.path().join("examples/fortran/main.f90")).expect("it is there");
    let read = "  allocate(weights(net_weights_bytes))\n  \
                open(newunit=unit, file='net.weights', access='stream', form='unformatted', status='old')\n  \
                read(unit) weights\n  if (net_weights_check(weights, net_weights_bytes - 1) == 0) stop 2\n  \
                if (net_weights_check(weights, net_weights_bytes) /= 0) stop 3\n  code = net_run(";
    let program = program
        .replace(
            "  integer(c_int) :: code\n",
            "  integer(c_int8_t), allocatable :: weights(:)\n  integer(c_int) :: code, unit\n",
        )
        .replace("  code = net_run(", read)
        .replace("probabilities, workspace)", "probabilities, weights, workspace)");
    std::fs::write(folder.path().join("file.f90"), program).expect("written");
    shell(&format!("gfortran {strict} net.f90 file.f90 net.o -o in_file"), folder.path());
    answers(&shell("./in_file", folder.path()));
}

#[test]
fn depfiles_name_every_file_of_a_saved_model_also_out_of_the_cache() {
    let folder = scene();
    shell(&format!("cp -r '{}' saved", path("testdata/saved_model").display()), folder.path());
    for _ in 0..2 {
        shell("rm -rf o; tfaot compile saved -o o --name net --dim 2 --emit obj,depfile --cache c", folder.path());
        let text = std::fs::read_to_string(folder.path().join("o/net.d")).expect("a depfile");
        assert!(text.starts_with("o/net.o: "), "{text}");
        assert!(text.contains("saved/saved_model.pb") && text.contains("saved/variables/variables.index"), "{text}");
    }
}
