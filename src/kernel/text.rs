//! Kernels as text, for people and tests.
use super::*;
use std::collections::HashMap;
use std::fmt::Write;

/// Prints the whole program.
pub fn print_program(program: &Program) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "program {} workspace {} weights {}",
        program.name, program.workspace_bytes, program.weights_bytes
    );
    for v in &program.state {
        let does = if v.changed { "changes" } else { "reads" };
        let _ = writeln!(
            out,
            "{does} {} {} at {} of {}",
            v.info.field,
            v.info.type_text(),
            v.offset,
            program.state_bytes()
        );
    }
    for (id, b) in program.buffers.iter() {
        let _ = writeln!(out, "buffer b{} {}[{}] {:?}", id.0, b.dtype, b.elements, b.place);
    }
    for (id, k) in program.kernels.iter() {
        let chunks = k.chunks.map_or(String::new(), |v| format!(" chunks v{} < {}", v.0, k.vars[v]));
        let range = k.range.map_or(String::new(), |[a, b]| format!(" from v{} to v{}", a.0, b.0));
        let limit = k.limit.map_or(String::new(), |(buf, at)| format!(" limit b{}[{at}]", buf.0));
        let _ = writeln!(out, "kernel k{} \"{}\"{chunks}{range}{limit} flops {}", id.0, k.label, k.flops);
        stmts(&mut out, k, &k.body, 1);
    }
    steps(&mut out, &program.steps, 0);
    out
}

/// The line of each statement in the text of its kernel, whose head is line 1.
pub fn statement_lines(kernel: &Kernel) -> HashMap<*const Stmt, u32> {
    fn number_lines(all: &[Stmt], next: &mut u32, lines: &mut HashMap<*const Stmt, u32>) {
        for s in all {
            lines.insert(std::ptr::from_ref(s), *next);
            *next += 1;
            match s {
                Stmt::For { body, .. } | Stmt::Let { body, .. } | Stmt::If { body, .. } | Stmt::While { body, .. } => {
                    number_lines(body, next, lines)
                }
                Stmt::Tiles(sums) => *next += sums.rows.len() as u32,
                Stmt::Store { .. } | Stmt::Prefetch { .. } | Stmt::Release | Stmt::Set { .. } => {}
            }
        }
    }
    let mut lines = HashMap::new();
    number_lines(&kernel.body, &mut 2, &mut lines);
    lines
}

fn steps(out: &mut String, all: &[Step], depth: usize) {
    let pad = "  ".repeat(depth);
    for s in all {
        match s {
            Step::Launch(k) => {
                let _ = writeln!(out, "{pad}launch k{}", k.0);
            }
            Step::Call(call) => {
                let all = |bufs: &[BufId]| bufs.iter().map(|b| format!("b{}", b.0)).collect::<Vec<_>>().join(", ");
                let _ = writeln!(out, "{pad}call {}({}) -> {}", call.to.name(), all(&call.args), all(&call.results));
            }
            Step::While { cond, pred, body, most_rounds } => {
                let bound = most_rounds.map_or(String::new(), |n| format!(" at most {n} times"));
                let _ = writeln!(out, "{pad}while b{}{bound}", pred.0);
                steps(out, cond, depth + 1);
                let _ = writeln!(out, "{pad}do");
                steps(out, body, depth + 1);
            }
            Step::Branch { selector, branches } => {
                for (i, b) in branches.iter().enumerate() {
                    let _ = writeln!(out, "{pad}branch {i} of b{}", selector.0);
                    steps(out, b, depth + 1);
                }
            }
            Step::Together(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    let _ = writeln!(out, "{pad}{}", if i == 0 { "together" } else { "and" });
                    steps(out, part, depth + 1);
                }
            }
        }
    }
}

fn stmts(out: &mut String, k: &Kernel, all: &[Stmt], depth: usize) {
    let pad = "  ".repeat(depth);
    for s in all {
        match s {
            Stmt::For { var, kind, body } => {
                let _ = writeln!(out, "{pad}for v{} < {} {kind:?}", var.0, k.vars[*var]);
                stmts(out, k, body, depth + 1);
            }
            Stmt::Store { buf, index: at, value } => {
                let _ = writeln!(out, "{pad}b{}[{}] = {}", buf.0, index(k, at), expr(k, *value));
            }
            Stmt::Prefetch { buf, index: at } => {
                let _ = writeln!(out, "{pad}prefetch b{}[{}]", buf.0, index(k, at));
            }
            Stmt::Tiles(sums) => tiles(out, k, sums, &pad),
            Stmt::Release => {
                let _ = writeln!(out, "{pad}release");
            }
            Stmt::Set { reg, at, value } => {
                let _ = writeln!(out, "{pad}r{}[{}] = {}", reg.0, index(k, at), expr(k, *value));
            }
            Stmt::Let { var, value, body } => {
                let _ = writeln!(out, "{pad}let v{} = {}", var.0, index(k, value));
                stmts(out, k, body, depth + 1);
            }
            Stmt::If { cond, body } => {
                let _ = writeln!(out, "{pad}if {}", expr(k, *cond));
                stmts(out, k, body, depth + 1);
            }
            Stmt::While { cond, body } => {
                let _ = writeln!(out, "{pad}while {}", expr(k, *cond));
                stmts(out, k, body, depth + 1);
            }
        }
    }
}

fn tiles(out: &mut String, k: &Kernel, sums: &TileSums, pad: &str) {
    let loops: Vec<String> = sums.loops.iter().map(|v| format!("v{} < {}", v.0, k.vars[*v])).collect();
    let _ = writeln!(
        out,
        "{pad}tiles b{}[{}] {}= b{} by b{}[{}] by {}, {} columns, {} terms for {}",
        sums.to.0,
        index(k, &sums.at),
        if sums.adds { "+" } else { "" },
        sums.left.0,
        sums.right.0,
        index(k, &sums.first),
        sums.stride,
        sums.columns(),
        sums.terms,
        loops.join(", "),
    );
    for r in &sums.rows {
        let _ = writeln!(out, "{pad}  {} rows [{}] by {}", r.count, index(k, &r.first), r.stride);
    }
}

fn index(k: &Kernel, x: &Index) -> String {
    let mut parts: Vec<String> = x
        .terms
        .iter()
        .map(|(atom, c)| {
            let text = match atom {
                Atom::Var(v) => format!("v{}", v.0),
                Atom::Div(x, n) => format!("({})/{n}", index(k, x)),
                Atom::Rem(x, n) => format!("({})%{n}", index(k, x)),
                Atom::Clamp(x, a, b) => format!("clamp({}, {a}, {b})", index(k, x)),
                Atom::Value(e) => format!("value({})", expr(k, *e)),
            };
            if *c == 1 { text } else { format!("{text}*{c}") }
        })
        .collect();
    if x.constant != 0 || parts.is_empty() {
        parts.push(x.constant.to_string());
    }
    parts.join(" + ")
}

fn expr(k: &Kernel, id: ExprId) -> String {
    match &k.exprs[id] {
        Expr::Const(t, bits) if *t == DType::F32 => format!("{}", f32::from_bits(*bits as u32)),
        Expr::Const(t, bits) => format!("{t} {bits}"),
        Expr::Load(b, at) => format!("b{}[{}]", b.0, index(k, at)),
        Expr::Word(b, at) => format!("word b{}[{}]", b.0, index(k, at)),
        Expr::DotProduct { x, y, z, .. } => format!("dot-product({}, {}, {})", expr(k, *x), expr(k, *y), expr(k, *z)),
        Expr::Op(op, args, _) => {
            let args: Vec<String> = args.iter().map(|&a| expr(k, a)).collect();
            format!("{}({})", op.name(), args.join(", "))
        }
        Expr::Number(x, t) => format!("{t}({})", index(k, x)),
        Expr::Within(x, a, b) => format!("within({}, {a}, {b})", index(k, x)),
        Expr::Reg(r, at) => format!("r{}[{}]", r.0, index(k, at)),
        Expr::Lanes(r, at, first, count) => format!("r{}[{}].{first}..{}", r.0, index(k, at), first + count),
        Expr::Fold(op, r, at) => format!("fold {} r{}[{}]", op.name(), r.0, index(k, at)),
    }
}
