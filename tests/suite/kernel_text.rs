//! How few kernels and buffers a module becomes: what is fused is read from the kernels themselves.
use tfaot::codegen;
use tfaot::compile;
use tfaot::hlo::text;
use tfaot::kernel::{BufferLocation, Program, Step};
use tfaot::target::Target;

const FOLDERS: &str = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n\
     max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }\n";

fn program(entry: &str) -> Program {
    with(FOLDERS, entry)
}

fn with(callees: &str, entry: &str) -> Program {
    let module = text::parse(&format!("HloModule m\n{callees}ENTRY e {{\n{entry}}}\n")).expect("sound HLO text");
    let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v4"), None).expect("a known processor");
    let lowered = compile::wrap_module(module).expect("arrays in and out");
    compile::plan(lowered, "m", "m", &target).expect("kernels").1
}

/// Kernels, and buffers in the workspace.
fn counts(p: &Program) -> (usize, usize) {
    (p.kernels.len(), p.buffers.values().filter(|b| matches!(b.place, BufferLocation::Workspace(_))).count())
}

#[test]
fn a_sum_of_products_is_one_kernel_without_a_temporary() {
    let p = program(
        "x = f32[64,100] parameter(0)\n y = f32[64,100] parameter(1)\n z = f32[64,100] parameter(2)\n\
         p = f32[64,100] multiply(y, z)\n s = f32[64,100] add(x, p)\n zero = f32[] constant(0)\n\
         ROOT r = f32[] reduce(s, zero), dimensions={0,1}, to_apply=add\n",
    );
    assert_eq!(counts(&p), (1, 0), "{}", tfaot::kernel::print_program(&p));
}

/// What tells statements from one another changes no instruction.
#[test]
fn code_that_tells_its_statements_is_the_same() {
    let p = program(
        "x = f32[64,100] parameter(0)\n y = f32[100,32] parameter(1)\n\
         p = f32[64,32] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n\
         e = f32[64,32] exponential(p)\n zero = f32[] constant(0)\n\
         s = f32[64] reduce(e, zero), dimensions={1}, to_apply=add\n ROOT r = (f32[64,32], f32[64]) tuple(e, s)\n",
    );
    for (triple, cpu) in [("x86_64-unknown-linux-gnu", "x86-64-v4"), ("aarch64-unknown-linux-gnu", "cortex-a76")] {
        let target = Target::resolve(Some(triple), Some(cpu), None).expect("a known processor");
        let plain = codegen::print(&p, &target, codegen::TextForm::Assembly).expect("assembly");
        let telling = codegen::assembly(&p, &target).expect("assembly");
        for symbol in telling.functions.values() {
            let function = |text: &str| {
                let begin = text.find(&format!("\n{symbol}:")).expect("the function");
                let end = text[begin..].find("Lfunc_end").expect("its end");
                codegen::own_lines(&text[begin..begin + end]).0
            };
            let (plain, telling) = (function(&plain), function(&telling.text));
            assert!(plain.lines().count() > 10);
            let other = plain.lines().zip(telling.lines()).find(|(a, b)| a != b);
            assert_eq!((other, plain.len()), (None, telling.len()), "{symbol} for {triple}");
        }
    }
}

#[test]
fn a_sum_along_outer_dimensions_too() {
    let p = program(
        "x = f32[64,100] parameter(0)\n y = f32[64,100] parameter(1)\n z = f32[64,100] parameter(2)\n\
         p = f32[64,100] multiply(y, z)\n s = f32[64,100] add(x, p)\n zero = f32[] constant(0)\n\
         ROOT r = f32[100] reduce(s, zero), dimensions={0}, to_apply=add\n",
    );
    assert_eq!(counts(&p).1, 0, "{}", tfaot::kernel::print_program(&p));
}

/// `softmax(x)` of `f32[5,21]` values called `y`.
const SOFTMAX: &str = "low = f32[] constant(-inf)\n zero = f32[] constant(0)\n\
     m = f32[5] reduce(y, low), dimensions={1}, to_apply=max\n mb = f32[5,21] broadcast(m), dimensions={0}\n\
     c = f32[5,21] subtract(y, mb)\n ex = f32[5,21] exponential(c)\n\
     t = f32[5] reduce(ex, zero), dimensions={1}, to_apply=add\n tb = f32[5,21] broadcast(t), dimensions={0}\n\
     ROOT p = f32[5,21] divide(ex, tb)\n";

#[test]
fn softmax_is_one_kernel() {
    let p = program(&format!("y = f32[5,21] parameter(0)\n{SOFTMAX}"));
    assert_eq!(counts(&p), (1, 0), "{}", tfaot::kernel::print_program(&p));
}

#[test]
fn softmax_after_a_layer_is_two_kernels() {
    let p = program(&format!(
        "x = f32[5,33] parameter(0)\n w = f32[33,21] constant({{...}})\n b = f32[21] parameter(1)\n\
         d = f32[5,21] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n\
         bb = f32[5,21] broadcast(b), dimensions={{1}}\n s = f32[5,21] add(d, bb)\n nil = f32[] constant(0)\n\
         zeros = f32[5,21] broadcast(nil), dimensions={{}}\n y = f32[5,21] maximum(s, zeros)\n{SOFTMAX}"
    ));
    assert_eq!(counts(&p), (2, 0), "{}", tfaot::kernel::print_program(&p));
}

#[test]
fn layer_norm_is_one_kernel() {
    let p = program(
        "x = f32[1,12,256] parameter(0)\n g = f32[256] parameter(1)\n b = f32[256] parameter(2)\n\
         zero = f32[] constant(0)\n n = f32[] constant(0.00390625)\n e = f32[] constant(1e-6)\n\
         s = f32[1,12] reduce(x, zero), dimensions={2}, to_apply=add\n nb = f32[1,12] broadcast(n), dimensions={}\n\
         m = f32[1,12] multiply(s, nb)\n mb = f32[1,12,256] broadcast(m), dimensions={0,1}\n\
         c = f32[1,12,256] subtract(x, mb)\n q = f32[1,12,256] multiply(c, c)\n\
         v = f32[1,12] reduce(q, zero), dimensions={2}, to_apply=add\n vn = f32[1,12] multiply(v, nb)\n\
         eb = f32[1,12] broadcast(e), dimensions={}\n ve = f32[1,12] add(vn, eb)\n r = f32[1,12] rsqrt(ve)\n\
         rb = f32[1,12,256] broadcast(r), dimensions={0,1}\n y = f32[1,12,256] multiply(c, rb)\n\
         gb = f32[1,12,256] broadcast(g), dimensions={2}\n bb = f32[1,12,256] broadcast(b), dimensions={2}\n\
         yg = f32[1,12,256] multiply(y, gb)\n ROOT out = f32[1,12,256] add(yg, bb)\n",
    );
    assert_eq!(counts(&p), (1, 0), "{}", tfaot::kernel::print_program(&p));
}

#[test]
fn heads_are_split_by_the_product_itself() {
    let p = program(
        "x = f32[12,64] parameter(0)\n w = f32[64,64] parameter(1)\n b = f32[64] parameter(2)\n\
         d = f32[12,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n\
         bb = f32[12,64] broadcast(b), dimensions={1}\n s = f32[12,64] add(d, bb)\n h = f32[12,4,16] reshape(s)\n\
         ROOT t = f32[4,12,16] transpose(h), dimensions={1,0,2}\n",
    );
    assert_eq!(counts(&p), (1, 0), "{}", tfaot::kernel::print_program(&p));
}

/// The kernels of a product of so many rows with weights of 256 by 256 that are not known now.
fn kernels_of_product(rows: u64, weights: &str, contracted: u64) -> usize {
    let p = program(&format!(
        "x = f32[{rows},256] parameter(0)\n w = f32[{weights}] parameter(1)\n \
         ROOT d = f32[{rows},256] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{contracted}}}\n"
    ));
    counts(&p).0
}

#[test]
fn a_right_side_that_is_read_once_is_read_where_it_lies() {
    assert_eq!(kernels_of_product(1, "256,256", 0), 1);
    assert_eq!(kernels_of_product(200, "256,256", 0), 2, "rows after rows read packed panels");
    assert_eq!(kernels_of_product(8, "256,256", 1), 1, "so are few sums along terms that lie side by side");
    assert_eq!(kernels_of_product(9, "256,256", 1), 2, "columns that lie apart are packed");
}

#[test]
fn a_power_of_short_rows_is_taken_of_many_at_once() {
    let p = program(
        "x = f32[64,64,3] parameter(0)\n s = f32[64,64,3] multiply(x, x)\n zero = f32[] constant(0)\n\
         n = f32[64,64] reduce(s, zero), dimensions={2}, to_apply=add\n e = f32[] constant(-1.5)\n\
         ee = f32[64,64] broadcast(e), dimensions={}\n w = f32[64,64] power(n, ee)\n\
         ww = f32[64,64,3] broadcast(w), dimensions={0,1}\n ROOT f = f32[64,64,3] multiply(x, ww)\n",
    );
    let text = tfaot::kernel::print_program(&p);
    let lanes = text.lines().take_while(|line| !line.contains("power(")).filter(|line| line.ends_with("< 16 Vector"));
    assert_eq!(lanes.count(), 1, "{text}");
}

#[test]
fn a_sum_of_layers_grows_in_their_epilogues() {
    let layer = |i: usize| {
        format!(
            "x{i} = f32[64,32] parameter({i})\n w{i} = f32[32,48] constant({{...}})\n b{i} = f32[48] parameter({})\n\
             d{i} = f32[64,48] dot(x{i}, w{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n\
             bb{i} = f32[64,48] broadcast(b{i}), dimensions={{1}}\n c{i} = f32[64,48] add(d{i}, bb{i})\n",
            i + 3
        )
    };
    let p = program(&format!(
        "{}{}{}s = f32[64,48] add(c0, c1)\n ROOT r = f32[64,48] add(s, c2)\n",
        layer(0),
        layer(1),
        layer(2)
    ));
    let temporary = |b: &&tfaot::kernel::BufId| matches!(p.buffers[**b].place, BufferLocation::Workspace(_));
    let temporaries: Vec<usize> = p.kernels.values().map(|k| k.buffers().iter().filter(temporary).count()).collect();
    // each but the first writes over what the one before wrote, which is the result
    assert_eq!(temporaries, [0, 0, 0], "{}", tfaot::kernel::print_program(&p));
}

#[test]
fn a_product_of_one_row_is_shared_by_threads() {
    let p = program(
        "x = f32[1,512] parameter(0)\n w = f32[512,256] constant({...})\n\
         ROOT d = f32[1,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
    );
    let chunks: Vec<u64> = p.kernels.values().map(|k| k.chunk_count()).collect();
    assert_eq!(chunks, [4], "{}", tfaot::kernel::print_program(&p));
}

#[test]
fn only_kernels_with_work_for_two_are_shared() {
    let shared =
        |entry: &str| tfaot::kernel::parallel_kernels(&program(entry)).values().copied().collect::<Vec<bool>>();
    let layer = |inputs: u64, outputs: u64| {
        shared(&format!(
            "x = f32[1,{inputs}] parameter(0)\n w = f32[{inputs},{outputs}] constant({{...}})\n\
             ROOT d = f32[1,{outputs}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
        ))
    };
    // a small layer is over in half a microsecond, one of half a megabyte takes five
    assert_eq!((layer(64, 128), layer(256, 512)), (vec![false], vec![true]));
    let each = |op: &str, n: u64| shared(&format!("x = f32[{n}] parameter(0)\n ROOT y = f32[{n}] {op}(x)\n"));
    assert_eq!((each("negate", 4000), each("negate", 1 << 18)), (vec![false], vec![true]));
    // the same number of elements is more where each is dear
    assert_eq!((each("negate", 1 << 12), each("tanh", 1 << 12)), (vec![false], vec![true]));
    let copy = shared("x = f32[512,512] parameter(0)\n ROOT y = f32[512,512] transpose(x), dimensions={1,0}\n");
    assert_eq!(copy, [true]);
}

/// The mean of planes that a product made in bands of rows is summed in those bands, whoever does them, that of planes made in
/// panels of channels by channels; the epilogue comes behind the last sum.
#[test]
fn means_are_shared_as_their_planes_were_made() {
    let labels = |rows: u64, inputs: u64, outputs: u64| {
        let p = program(&format!(
            "x = f32[1,{rows},{rows},{inputs}] parameter(0)\n w = f32[1,1,{inputs},{outputs}] constant({{...}})\n\
             y = f32[1,{rows},{rows},{outputs}] convolution(x, w), window={{size=1x1}}, dim_labels=b01f_01io->b01f\n\
             z = f32[] constant(0)\n s = f32[1,{outputs}] reduce(y, z), dimensions={{1,2}}, to_apply=add\n\
             n = f32[] constant(0.01)\n nn = f32[1,{outputs}] broadcast(n), dimensions={{}}\n\
             m = f32[1,{outputs}] multiply(s, nn)\n\
             ROOT r = (f32[1,{rows},{rows},{outputs}], f32[1,{outputs}]) tuple(y, m)\n"
        ));
        p.kernels.values().filter(|k| k.label.starts_with("bands of")).map(|k| k.chunk_count()).collect::<Vec<_>>()
    };
    assert_eq!(labels(56, 16, 64), [2]);
    assert_eq!(labels(7, 192, 1152), Vec::<u64>::new());
}

/// Loops of 200 rounds of `tanh` over `f32[900]`.
const LOOPS: &str = "body { p = (s32[], f32[900]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n one = s32[] constant(1)\n\
     next = s32[] add(i, one)\n x = f32[900] get-tuple-element(p), index=1\n y = f32[900] tanh(x)\n\
     ROOT r = (s32[], f32[900]) tuple(next, y) }\n\
     more { p = (s32[], f32[900]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n n = s32[] constant(200)\n\
     ROOT go = pred[] compare(i, n), direction=LT }\n";

/// Two of those loops, the second from `start` on.
fn two_loops(start: &str) -> Program {
    with(
        LOOPS,
        &format!(
            "x = f32[900] parameter(0)\n nil = s32[] constant(0)\n s = (s32[], f32[900]) tuple(nil, x)\n\
             a = (s32[], f32[900]) while(s), condition=more, body=body\n u = f32[900] get-tuple-element(a), index=1\n\
             q = f32[900] cosine({start})\n t = (s32[], f32[900]) tuple(nil, q)\n\
             b = (s32[], f32[900]) while(t), condition=more, body=body\n v = f32[900] get-tuple-element(b), index=1\n\
             ROOT r = (f32[900], f32[900]) tuple(u, v)\n"
        ),
    )
}

#[test]
fn loops_that_need_nothing_of_one_another_run_at_once() {
    let p = two_loops("x");
    assert!(
        p.steps.iter().any(|s| matches!(s, Step::Together(parts) if parts.len() == 2)),
        "{}",
        tfaot::kernel::print_program(&p)
    );
    let p = two_loops("u");
    assert!(!p.steps.iter().any(|s| matches!(s, Step::Together(_))), "{}", tfaot::kernel::print_program(&p));
}

#[test]
fn the_small_kernels_of_a_round_are_one() {
    let p = two_loops("u");
    let rounds = p.steps.iter().filter_map(|s| match s {
        Step::While { cond, body, .. } => Some((cond.len(), body.len())),
        _ => None,
    });
    assert!(rounds.eq([(1, 1); 2]), "{}", tfaot::kernel::print_program(&p));
}

#[test]
fn a_loop_changes_its_state_in_place() {
    // the counter is read behind what makes the next one, and the sum follows a product of what it is added to
    let body = "body { p = (s32[], f32[1,32], f32[1,32], f32[9,32], f32[32,32]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n\
         one = s32[] constant(1)\n next = s32[] add(i, one)\n x = f32[1,32] get-tuple-element(p), index=1\n\
         c = f32[1,32] get-tuple-element(p), index=2\n l = f32[9,32] get-tuple-element(p), index=3\n\
         w = f32[32,32] get-tuple-element(p), index=4\n\
         d = f32[1,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n m = f32[1,32] add(d, c)\n\
         y = f32[1,32] tanh(m)\n zero = s32[] constant(0)\n u = f32[9,32] dynamic-update-slice(l, y, i, zero)\n\
         ROOT r = (s32[], f32[1,32], f32[1,32], f32[9,32], f32[32,32]) tuple(next, y, m, u, w) }\n\
         more { p = (s32[], f32[1,32], f32[1,32], f32[9,32], f32[32,32]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n\
         n = s32[] constant(9)\n ROOT go = pred[] compare(i, n), direction=LT }\n";
    let p = with(
        body,
        "x = f32[1,32] parameter(0)\n w = f32[32,32] parameter(1)\n nil = s32[] parameter(2)\n c = f32[1,32] parameter(3)\n\
         l = f32[9,32] parameter(4)\n t = (s32[], f32[1,32], f32[1,32], f32[9,32], f32[32,32]) tuple(nil, x, c, l, w)\n\
         a = (s32[], f32[1,32], f32[1,32], f32[9,32], f32[32,32]) while(t), condition=more, body=body\n\
         ROOT u = f32[9,32] get-tuple-element(a), index=3\n",
    );
    let step = p.steps.iter().find_map(|s| match s {
        Step::While { body, .. } => Some(body),
        _ => None,
    });
    let written = step.map(|body| tfaot::kernel::BufferAccess::of_steps(&p, body).written);
    // the counter, the sum, its tanh and the list; a copy would write something else first
    assert_eq!(written.map(|w| w.len()), Some(4), "{}", tfaot::kernel::print_program(&p));
}

/// A layer of 1x1 windows from `inputs` to `channels` channels on `size` pixels each way, and a depthwise one of 3x3.
fn expanded(size: u64, inputs: u64, channels: u64) -> Program {
    let middle = format!("f32[1,{size},{size},{channels}]");
    program(&format!(
        "x = f32[1,{size},{size},{inputs}] parameter(0)\n w = f32[1,1,{inputs},{channels}] constant({{...}})\n\
         v = f32[3,3,1,{channels}] constant({{...}})\n zero = f32[] constant(0)\n \
         c = {middle} convolution(x, w), window={{size=1x1}}, dim_labels=b01f_01io->b01f\n \
         z = {middle} broadcast(zero), dimensions={{}}\n r = {middle} maximum(c, z)\n \
         ROOT d = {middle} convolution(r, v), window={{size=3x3 pad=1_1x1_1}}, \
         dim_labels=b01f_01io->b01f, feature_group_count={channels}\n"
    ))
}

#[test]
fn a_depthwise_window_makes_what_would_not_stay_near() {
    let p = expanded(56, 24, 144);
    assert_eq!(counts(&p), (1, 0), "{}", tfaot::kernel::print_program(&p));
}

#[test]
fn what_stays_near_or_is_dear_to_make_twice_has_memory() {
    for (size, inputs, channels) in [(7, 64, 384), (56, 960, 144)] {
        let p = expanded(size, inputs, channels);
        // the product and the window, whose operand has no margin
        assert_eq!(counts(&p), (2, 1), "{}", tfaot::kernel::print_program(&p));
    }
}

#[test]
fn what_a_layer_of_one_row_reads_is_asked_for_by_the_product_before_it() {
    let p = program(
        "x = f32[28,320] parameter(0)\n w = f32[320,1280] constant({...})\n v = f32[1280,1000] constant({...})\n\
         y = f32[28,1280] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n zero = f32[] constant(0)\n\
         s = f32[1280] reduce(y, zero), dimensions={0}, to_apply=max\n r = f32[1,1280] reshape(s)\n\
         ROOT d = f32[1,1000] dot(r, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
    );
    let text = tfaot::kernel::print_program(&p);
    let asked: std::collections::BTreeSet<&str> =
        text.lines().filter_map(|l| l.trim().strip_prefix("prefetch ")?.split('[').next()).collect();
    assert_eq!(asked.len(), 2, "its own panels and those of the layer: {text}");
}

#[test]
fn a_kernel_is_called_after_its_heaviest_instruction() {
    let p = program(
        "x = f32[1,16,16,8] parameter(0)\n w = f32[1,1,8,24] constant({...})\n zero = f32[] constant(0)\n\
         zeros = f32[1,16,16,24] broadcast(zero), dimensions={}\n\
         c = f32[1,16,16,24] convolution(x, w), window={size=1x1}, dim_labels=b01f_01io->b01f, metadata={op_type=\"Conv2D\" op_name=\"stem/Conv2D\"}\n\
         ROOT r = f32[1,16,16,24] maximum(c, zeros), metadata={op_type=\"Relu\" op_name=\"stem/Relu\"}\n",
    );
    let labels: Vec<&str> = p.kernels.values().map(|k| k.label.as_str()).collect();
    assert_eq!(labels, ["convolution stem/Conv2D"], "{}", tfaot::kernel::print_program(&p));
}
