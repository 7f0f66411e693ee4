"""Models compiled while a project is built: `tf_library` with the attributes of tfcompile's rule.

    # WORKSPACE
    local_repository(name = "tfaot", path = "/usr/share/bazel/tfaot")
    load("@tfaot//:tfaot.bzl", "tfaot_compiler")
    tfaot_compiler()

    # BUILD
    load("@tfaot//:tfaot.bzl", "tf_library")
    tf_library(name = "net", graph = "model.pb", config = "config.pbtxt", cpp_class = "vision::Net")
    cc_binary(name = "program", srcs = ["main.cc"], deps = [":net"])   # #include "net.h"
"""

def _compiler(context):
    program = context.attr.program or context.which("tfaot")
    if not program:
        fail("the program `tfaot` is not on PATH: tfaot_compiler(program = \"/path/to/tfaot\") names it")
    context.symlink(program, "tfaot")
    context.file("BUILD.bazel", "exports_files([\"tfaot\"], visibility = [\"//visibility:public\"])\n")

_compiler_repository = repository_rule(
    implementation = _compiler,
    attrs = {"program": attr.string(doc = "The path of the compiler; without one it is looked for on PATH.")},
    environ = ["PATH"],
    local = True,
)

def tfaot_compiler(name = "tfaot_compiler", program = ""):
    """Makes the compiler that is installed on this machine the program of `tf_library`.

    Args:
      name: the repository with the compiler; another name goes into `tfcompile_tool`.
      program: its path, where it is not on PATH.
    """
    _compiler_repository(name = name, program = program)

# Where a build is for another CPU than the machine's, as tfcompile's rule chooses. Processors are those that a build without
# CPU is for elsewhere, too.
_PORTABLE = {
    "x86_64-unknown-linux-gnu": "x86-64-v3,x86-64-v4",
    "aarch64-unknown-linux-gnu": "cortex-a76",
}

def tf_library(
        name,
        graph,
        config,
        cpp_class,
        debug_info = None,
        freeze_checkpoint = None,
        freeze_saver = None,
        gen_test = False,
        gen_benchmark = False,
        gen_compiler_log = False,
        visibility = None,
        testonly = None,
        tfcompile_flags = None,
        tfcompile_tool = "@tfaot_compiler//:tfaot",
        include_standard_runtime_deps = True,
        enable_xla_hlo_profiling = False,
        enable_tracemes = False,
        mlir_components = "None",
        deps = None,
        tags = [],
        copts = [],
        xla_flags = None,
        target_triple = "x86_64-unknown-linux-gnu",
        target_cpu = None):
    """A library of C++ that calls a compiled graph: `NAME.h` declares the class.

    Args:
      name: the library.
      graph: the GraphDef; a name that ends in `.pbtxt` is text.
      config: the tf2xla.Config with feeds and fetches.
      cpp_class: the class, such as `vision::Net`.
      debug_info: without effect: diagnostics name nodes.
      freeze_checkpoint: refused: a frozen graph, or a SavedModel by way of `tfaot compile`, has the variables.
      freeze_saver: refused, as `freeze_checkpoint`.
      gen_test: refused.
      gen_benchmark: refused: `tfaot bench` times the graph.
      gen_compiler_log: refused.
      visibility: of the library.
      testonly: of the library.
      tfcompile_flags: further flags of `tfaot tfcompile`, a list or words in a string.
      tfcompile_tool: the compiler.
      include_standard_runtime_deps: without effect: there is no run time.
      enable_xla_hlo_profiling: refused.
      enable_tracemes: refused.
      mlir_components: without effect.
      deps: further dependencies of the library.
      tags: of all that is made.
      copts: of the library.
      xla_flags: further flags of XLA, words in a string.
      target_triple: LLVM's triple.
      target_cpu: processors with commas between them, between which the code picks. By default x86-64-v3 and x86-64-v4, or
        cortex-a76.
    """
    for attribute, value in {
        "freeze_checkpoint": freeze_checkpoint,
        "freeze_saver": freeze_saver,
        "gen_test": gen_test,
        "gen_benchmark": gen_benchmark,
        "gen_compiler_log": gen_compiler_log,
        "enable_xla_hlo_profiling": enable_xla_hlo_profiling,
        "enable_tracemes": enable_tracemes,
    }.items():
        if value:
            fail("tf_library: tfaot has no `%s`" % attribute)
    files = {"header": name + ".h", "function_object": name + ".o"}
    flags = ["--out_%s=$(location %s)" % (kind, file) for kind, file in files.items()]

    # Both are empty, and the library needs neither.
    for kind in ("metadata_object", "constant_buffers_object"):
        flags.append("--out_%s=$(@D)/%s_%s.o" % (kind, name, kind))
    cpu = target_cpu or _PORTABLE.get(target_triple, "")
    flags += ["--target_triple=" + target_triple, "--target_cpu=" + cpu, "--cpp_class=" + cpp_class, "--entry_point=" + name]
    if tfcompile_flags:
        flags += [tfcompile_flags] if type(tfcompile_flags) == "string" else tfcompile_flags
    if xla_flags:
        flags.append(xla_flags)
    native.genrule(
        name = name + "_tfcompile",
        srcs = [graph, config],
        outs = files.values(),
        cmd = "$(execpath %s) tfcompile --graph=$(location %s) --config=$(location %s) %s" % (tfcompile_tool, graph, config, " ".join(flags)),
        message = "Compiling the model",
        tags = tags,
        testonly = testonly,
        tools = [tfcompile_tool],
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = [files["function_object"]],
        hdrs = [files["header"]],
        copts = copts,
        deps = deps or [],
        tags = tags,
        testonly = testonly,
        visibility = visibility,
    )
