//! What a program may take for itself: arrays that are there at once, and what Winograd's method needs between its transforms, which
//! is bounded where that would be more.
use tfaot::compile;
use tfaot::hlo::text;
use tfaot::target::Target;

/// Ones, as HLO's text has them.
fn ones(dims: &[u64]) -> String {
    match dims.split_first() {
        None => "1".to_string(),
        Some((&n, rest)) => format!("{{{}}}", vec![ones(rest); n as usize].join(",")),
    }
}

/// A constant of ones.
fn constant(name: &str, dims: &[u64]) -> String {
    let all: Vec<String> = dims.iter().map(u64::to_string).collect();
    format!("{name} = f32[{}] constant({})", all.join(","), ones(dims))
}

/// Bytes of the workspace of a module whose body is this.
fn workspace(body: &str) -> u64 {
    workspace_of("", body)
}

/// The same with more computations.
fn workspace_of(others: &str, body: &str) -> u64 {
    let folds = "max {\na = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT m = f32[] maximum(a, b)\n}\n\
                 add {\na = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT m = f32[] add(a, b)\n}\n";
    let module = text::parse(&format!("HloModule m\n{folds}{others}ENTRY e {{\n{body}\n}}\n")).expect("sound HLO");
    let lowered = compile::wrap_module(module).expect("arrays in and out");
    let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v4"), None).expect("a processor");
    compile::plan(lowered, "t", "t", &target).expect("kernels").1.workspace_bytes
}

#[test]
fn a_softmax_is_written_over_the_product_that_it_reads() {
    let body = format!(
        "x = f32[40,64] parameter(0)\n{}\n\
         d = f32[40,128] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n\
         low = f32[] constant(-inf)\nm = f32[40] reduce(d, low), dimensions={{1}}, to_apply=max\n\
         ms = f32[40,128] broadcast(m), dimensions={{0}}\ns = f32[40,128] subtract(d, ms)\n\
         e = f32[40,128] exponential(s)\nzero = f32[] constant(0)\n\
         t = f32[40] reduce(e, zero), dimensions={{1}}, to_apply=add\nts = f32[40,128] broadcast(t), dimensions={{0}}\n\
         ROOT r = f32[40,128] divide(e, ts)",
        constant("w", &[64, 128])
    );
    assert_eq!(workspace(&body), 0);
}

#[test]
fn tiles_of_winograds_method_need_no_margin() {
    let conv = |name: &str, x: &str, n: u64| {
        format!(
            "{}\n{name} = f32[1,{n},{n},16] convolution({x}, w{name}), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f",
            constant(&format!("w{name}"), &[3, 3, 16, 16])
        )
    };
    for n in [13, 28, 50] {
        let body = format!(
            "x = f32[1,{n},{n},16] parameter(0)\n{}\n{}\nROOT r = f32[1,{n},{n},16] tanh(b)",
            conv("a", "x", n),
            conv("b", "a", n)
        );
        let array = 4 * n * n * 16;
        assert!(workspace(&body) < array + 4 * 36 * 16 * 16 * 2, "{n}: {} of {array}", workspace(&body));
    }
}

#[test]
fn windows_along_two_axes_are_done_block_by_block() {
    let body = format!(
        "x = f32[1,64,64,32] parameter(0)\n{}\n\
         ROOT c = f32[1,64,64,16] convolution(x, w), window={{size=5x5 pad=2_2x2_2}}, dim_labels=b01f_01io->b01f",
        constant("w", &[5, 5, 32, 16])
    );
    let weights = 4 * 8 * 5 * 32 * 16;
    assert!(workspace(&body) <= weights + 4096, "{}", workspace(&body));
}

#[test]
fn what_a_net_skips_to_holds_no_memory_for_what_is_put_beside_it() {
    let conv = |name: &str, x: &str, n: u64, [i, o]: [u64; 2]| {
        format!(
            "{}\n{name} = f32[1,{n},{n},{o}] convolution({x}, w{name}), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f",
            constant(&format!("w{name}"), &[3, 3, i, o])
        )
    };
    let body = format!(
        "x = f32[1,48,48,16] parameter(0)\n{}\nlow = f32[] constant(-inf)\n\
         p = f32[1,24,24,16] reduce-window(a, low), window={{size=1x2x2x1 stride=1x2x2x1}}, to_apply=max\n{}\n{}\n\
         apart = f32[1,24,1,24,1,32] reshape(c)\nsquare = f32[1,24,24,32] reshape(apart)\n\
         wide = f32[1,24,2,24,2,32] broadcast(square), dimensions={{0,1,3,5}}\nup = f32[1,48,48,32] reshape(wide)\n\
         both = f32[1,48,48,48] concatenate(up, a), dimensions={{3}}\n{}\nROOT r = f32[1,48,48,16] tanh(d)",
        conv("a", "x", 48, [16, 16]),
        conv("b", "p", 24, [16, 16]),
        conv("c", "b", 24, [16, 32]),
        conv("d", "both", 48, [48, 16]),
    );
    // the skipped plane and the one that was made larger, and weights that are transformed
    let arrays = 4 * 48 * 48 * (16 + 32);
    assert!(workspace(&body) <= arrays + 4 * 36 * 48 * 16 + 4096, "{} of {arrays}", workspace(&body));
}

#[test]
fn a_plane_with_margins_is_made_and_read_in_halves() {
    let body = format!(
        "x = f32[1,32,32,16] parameter(0)\n{}\n\
         t = f32[1,64,64,16] convolution(x, wt), window={{size=4x4 pad=2_2x2_2 lhs_dilate=2x2}}, dim_labels=b01f_01io->b01f\n{}\n\
         c = f32[1,64,64,3] convolution(t, wc), window={{size=7x7 pad=3_3x3_3}}, dim_labels=b01f_01io->b01f\n\
         ROOT r = f32[1,64,64,3] tanh(c)",
        constant("wt", &[4, 4, 16, 16]),
        constant("wc", &[7, 7, 16, 3])
    );
    let plane = 4 * 64 * 64 * 16;
    // beside a copy of the parameter that has margins
    assert!(workspace(&body) < plane, "{} of {plane}", workspace(&body));
}

/// A square plane that a square window with padding reads, which leaves its size, for so many channels.
fn read_by_a_window(n: u64, channels: u64, size: u64, columns: u64) -> String {
    let pad = size / 2;
    format!(
        "x = f32[1,{n},{n},{channels}] parameter(0)\nn = f32[1,{n},{n},{channels}] tanh(x)\n{}\n\
         c = f32[1,{n},{n},{columns}] convolution(n, w), window={{size={size}x{size} pad={pad}_{pad}x{pad}_{pad}}}, dim_labels=b01f_01io->b01f\n\
         ROOT r = f32[1,{n},{n},{columns}] tanh(c)",
        constant("w", &[size, size, channels, columns])
    )
}

#[test]
fn what_is_after_a_row_is_what_is_before_the_next_one() {
    // the sums lie where the result will
    assert_eq!(workspace(&read_by_a_window(16, 16, 3, 8)), 4 * 16 * (18 * 17 + 1));
}

#[test]
fn a_plane_gets_its_margins_when_its_window_comes() {
    // the plane of 96 channels stands beside the next one while that is made; a window of 5x5 reads that one with margins
    let body = format!(
        "x = f32[1,32,32,4] parameter(0)\n{}\n{}\n{}\n\
         a = f32[1,32,32,96] convolution(x, wa), window={{size=1x1}}, dim_labels=b01f_01io->b01f\n\
         b = f32[1,32,32,16] convolution(a, wb), window={{size=1x1}}, dim_labels=b01f_01io->b01f, \
         feature_group_count=2\n\
         ROOT c = f32[1,16,16,8] convolution(b, wc), window={{size=5x5 stride=2x2 pad=1_2x1_2}}, \
         dim_labels=b01f_01io->b01f",
        constant("wa", &[1, 1, 4, 96]),
        constant("wb", &[1, 1, 48, 16]),
        constant("wc", &[5, 5, 16, 8])
    );
    let (first, second) = (4 * 32 * 32 * 96, 4 * 32 * 32 * 16);
    assert_eq!(workspace(&body), first + second);
}

#[test]
fn an_argument_that_a_window_pads_is_not_copied() {
    let body = |size: u64, pad: &str| {
        format!(
            "x = f32[1,64,64,3] parameter(0)\n{}\n\
             c = f32[1,32,32,8] convolution(x, w), window={{size={size}x{size} stride=2x2 pad={pad}x{pad}}}, dim_labels=b01f_01io->b01f\n\
             ROOT r = f32[1,32,32,8] tanh(c)",
            constant("w", &[size, size, 3, 8])
        )
    };
    assert_eq!(workspace(&body(3, "0_1")), 0);
    // more results at the edges than become kernels of their own: the argument with its margins
    assert!(workspace(&body(9, "3_4")) > 4 * 3 * 64 * 64);
}

#[test]
fn keys_that_lie_turned_are_read_where_they_lie() {
    let body = |rows: u64| {
        format!(
            "q = f32[4,{rows},32] parameter(0)\nk = f32[4,100,32] parameter(1)\n\
             ROOT s = f32[4,{rows},100] dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, \
             lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}"
        )
    };
    assert_eq!(workspace(&body(1)), 0);
    assert_eq!(workspace(&body(3)), 0);
    assert!(workspace(&body(40)) >= 4 * 4 * 100 * 32);
}

#[test]
fn a_low_plane_has_no_rows_of_zeros() {
    assert_eq!(workspace(&read_by_a_window(7, 64, 5, 24)), 4 * 64 * (7 * 9 + 2));
}

#[test]
fn what_is_concatenated_late_holds_no_memory_for_the_rest() {
    let layer = |name: &str, x: &str, from: u64, to: u64| {
        let shape = format!("f32[1,256,{to}]");
        let weights = constant(&format!("w{name}"), &[1, from, to]);
        format!(
            "{weights}\n{name} = {shape} convolution({x}, w{name}), window={{size=1}}, dim_labels=b0f_0io->b0f\n\
             t{name} = {shape} tanh({name})"
        )
    };
    let body = format!(
        "x = f32[1,256,16] parameter(0)\n{}\n{}\n{}\n{}\n\
         both = f32[1,256,48] concatenate(ts, tc), dimensions={{2}}\n{}\n\
         d = f32[1,84,8] convolution(both, wd), window={{size=5 stride=3}}, dim_labels=b0f_0io->b0f\n\
         ROOT r = f32[1,84,8] tanh(d)",
        layer("s", "x", 16, 16),
        layer("a", "ts", 16, 32),
        layer("b", "ta", 32, 64),
        layer("c", "tb", 64, 32),
        constant("wd", &[5, 48, 8])
    );
    // the two parts and the whole; with the first part in the whole, that and the largest two layers
    assert_eq!(workspace(&body), 4 * 256 * (16 + 32 + 48));
}

#[test]
fn a_step_that_comes_again_and_again_is_multiplied_once() {
    let state = "(s32[], f32[1,64], f32[30,1,16])";
    let parts = "p = {state} parameter(0)\ni = s32[] get-tuple-element(p), index=0";
    let loops = format!(
        "cond {{\n{parts}\nn = s32[] constant(30)\nROOT go = pred[] compare(i, n), direction=LT\n}}\n\
         body {{\n{parts}\ny = f32[1,64] get-tuple-element(p), index=1\nxs = f32[30,1,16] get-tuple-element(p), index=2\n\
         zero = s32[] constant(0)\none = s32[] constant(1)\nnext = s32[] add(i, one)\n\
         s = f32[1,1,16] dynamic-slice(xs, i, zero, zero), dynamic_slice_sizes={{1,1,16}}\nx = f32[1,16] reshape(s)\n{}\n\
         d = f32[1,64] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n\
         sum = f32[1,64] add(d, y)\nz = f32[1,64] tanh(sum)\nROOT t = {state} tuple(next, z, xs)\n}}\n",
        constant("w", &[16, 64])
    );
    let body = format!(
        "code = f32[16] parameter(0)\nxs = f32[30,1,16] broadcast(code), dimensions={{2}}\nzero = s32[] constant(0)\n\
         none = f32[] constant(0)\ny = f32[1,64] broadcast(none), dimensions={{}}\n\
         start = {state} tuple(zero, y, xs)\nend = {state} while(start), condition=cond, body=body\n\
         ROOT r = f32[1,64] get-tuple-element(end), index=1"
    );
    // the state before and behind a step, and the product
    let all = workspace_of(&loops.replace("{state}", state), &body);
    assert!(all <= 4 * 64 * 4, "{all}");
}
