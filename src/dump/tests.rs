use super::*;
use crate::diag::Code;

fn module() -> Module {
    text::parse("HloModule a/b_c.3, is_scheduled=false\nENTRY e { p = f32[2] parameter(0) ROOT r = f32[2] add(p, p) }")
        .or_else(|_| text::parse("ENTRY e { p = f32[2] parameter(0) ROOT r = f32[2] add(p, p) }"))
        .expect("parses")
}

fn names(flags: &str) -> Vec<String> {
    let (flags, warnings) = parse(flags, DumpFlags::default()).expect("flags");
    assert_eq!(warnings, Vec::<String>::new());
    let module = module();
    let Some(mut dump) = Dump::new(&flags, &module, 7, 42) else { return Vec::new() };
    dump.before_optimization(&module).expect("is dumped");
    dump.after_pass(&module, PIPELINE[0].name).expect("is dumped");
    dump.after_pass(&module, PIPELINE[PIPELINE.len() - 1].name).expect("is dumped");
    dump.files.into_iter().map(|f| f.0).collect()
}

#[test]
fn files_have_the_names_that_xla_gives() {
    let name = module().name;
    let m = format!("module_0007.{}", name.replace('/', "_"));
    assert_eq!(names(""), Vec::<String>::new());
    assert_eq!(names("--xla_dump_to=d"), [format!("{m}.before_optimizations.txt"), format!("{m}.debug_options")]);
    assert_eq!(
        names("--xla_dump_to=d --xla_dump_hlo_as_proto --xla_dump_hlo_as_dot=true --xla_dump_include_timestamp"),
        [
            format!("42.{m}.before_optimizations.hlo.pb"),
            format!("42.{m}.before_optimizations.dot"),
            format!("{m}.debug_options")
        ]
    );
    let (first, second, last) = (PIPELINE[0].name, PIPELINE[1].name, PIPELINE[PIPELINE.len() - 1].name);
    assert_eq!(
        names("--xla_dump_hlo_pass_re=.*")[2..],
        [
            format!("{m}.0000.optimize.after_pipeline-start.before_{first}.txt"),
            format!("{m}.0001.optimize.after_{first}.before_{second}.txt"),
            format!("{m}.0002.optimize.after_{last}.before_pipeline-end.txt"),
        ]
    );
    assert_eq!(names("--xla_dump_to=d --xla_dump_hlo_module_re=other"), Vec::<String>::new());
    assert_eq!(names("--xla_dump_to=d --xla_dump_max_hlo_modules=7"), Vec::<String>::new());
}

#[test]
fn what_is_not_known_is_said() {
    let (_, warnings) = parse("--xla_dump_hlo_as_txt --xla_dump_to=x", DumpFlags::default()).expect("flags");
    assert!(warnings[0].contains("--xla_dump_hlo_as_text"), "{warnings:?}");
    let error = parse("--xla_dump_hlo_pass_re=(", DumpFlags::default()).expect_err("no expression");
    assert_eq!(error.into_diagnostics()[0].code, Code::BadOption);
}
