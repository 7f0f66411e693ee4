//! `NAME_supported`: asks the processor and the system, once; the answer never changes, so that storing it is no race.
use super::hwcaps;
use crate::target::features::{CpuidRegister, MachineChecks};
use std::fmt::Write;

/// Number of Linux's system call by which a process requests register state (`Documentation/arch/x86/xstate.rst`); threads and children
/// inherit the permission.
const ARCH_PRCTL: u32 = 158;
/// `ARCH_REQ_XCOMP_PERM`.
const REQUEST: u32 = 0x1023;

/// Emits the function `name` that tests whether the machine passes the run-time checks `asks`; `attributes` is the number of its attribute
/// group.
pub fn emit_supported(out: &mut String, name: &str, asks: &MachineChecks, visibility: &str, attributes: usize) {
    let define = format!("define {visibility}i32 @{name}() #{attributes}");
    if asks.is_empty() {
        let _ = writeln!(out, "{define} {{\n  ret i32 1\n}}");
        return;
    }
    let known = format!("{}_cpu", name.strip_suffix("_supported").unwrap_or(name));
    // 0: not asked yet, 1: no, 2: yes
    let _ = write!(
        out,
        "@{known} = internal global i32 0\n{define} {{\nentry:\n  %known = load atomic i32, ptr @{known} monotonic, align 4\n  %again = icmp ne i32 %known, 0\n  br i1 %again, label %out, label %ask\nask:\n"
    );
    let answers = match asks.hwcaps {
        [0, 0] => of_x86(out, asks),
        words => hwcaps::emit_hwcap_test(out, words),
    };
    let _ = write!(
        out,
        "  br label %store\nstore:\n  %answer = phi i32 {answers}\n  store atomic i32 %answer, ptr @{known} monotonic, align 4\n  br label %out\nout:\n  %told = phi i32 [ %known, %entry ], [ %answer, %store ]\n  %yes = sub i32 %told, 1\n  ret i32 %yes\n}}\n",
    );
}

/// Emits the `cpuid` checks of an x86-64 processor; returns the LLVM text that computes `%answer`.
fn of_x86(out: &mut String, asks: &MachineChecks) -> String {
    // leaves beyond the highest are answered with those of another; the extended ones every x86-64 processor has
    let highest = asks.asks.iter().map(|ask| ask.leaf).filter(|leaf| leaf >> 31 == 0).max().unwrap_or(0);
    cpuid(out, "first", 0, 0, CpuidRegister::A);
    let _ = writeln!(out, "  %enough = icmp uge i32 %first, {highest}\n  br i1 %enough, label %bits0, label %store");
    for (i, ask) in asks.asks.iter().enumerate() {
        let _ = writeln!(out, "bits{i}:");
        cpuid(out, &format!("word{i}"), ask.leaf, ask.part, ask.register);
        let next = i + 1;
        let _ = writeln!(
            out,
            "  %mask{i} = and i32 %word{i}, {mask}\n  %has{i} = icmp eq i32 %mask{i}, {mask}\n  br i1 %has{i}, label %bits{next}, label %store",
            mask = ask.mask
        );
    }
    let last = asks.asks.len();
    let _ = writeln!(out, "bits{last}:");
    let won = of_system(out, asks, last);
    let lost: Vec<String> = (0..last).map(|i| format!("[ 1, %bits{i} ]")).collect();
    format!("[ 1, %ask ], {}, {won}", lost.join(", "))
}

/// Writes the checks of register state that only the operating system can answer (`xgetbv`, permission for tiles); returns how `%answer`
/// follows from them.
fn of_system(out: &mut String, asks: &MachineChecks, last: usize) -> String {
    let state = asks.state;
    if state == 0 {
        return format!("[ 2, %bits{last} ]");
    }
    let _ = writeln!(
        out,
        "  %xs = call {{ i32, i32 }} asm sideeffect \"xgetbv\", \"={{ax}},={{dx}},{{cx}}\"(i32 0)\n  %x0 = extractvalue {{ i32, i32 }} %xs, 0\n  %saved = and i32 %x0, {state}\n  %all = icmp eq i32 %saved, {state}"
    );
    let Some(component) = asks.request else {
        let _ = writeln!(out, "  %won = select i1 %all, i32 2, i32 1");
        return format!("[ %won, %bits{last} ]");
    };
    let _ = writeln!(
        out,
        "  br i1 %all, label %request, label %store\nrequest:\n  %refused = call i64 asm sideeffect \"syscall\", \"={{ax}},{{ax}},{{di}},{{si}},~{{rcx}},~{{r11}},~{{memory}}\"(i64 {ARCH_PRCTL}, i64 {REQUEST}, i64 {component})\n  %given = icmp eq i64 %refused, 0\n  %had = select i1 %given, i32 2, i32 1"
    );
    format!("[ 1, %bits{last} ], [ %had, %request ]")
}

/// One register of an answer as `%{value}`.
fn cpuid(out: &mut String, value: &str, leaf: u32, part: u32, register: CpuidRegister) {
    let index = match register {
        CpuidRegister::A => 0,
        CpuidRegister::B => 1,
        CpuidRegister::C => 2,
        CpuidRegister::D => 3,
    };
    let _ = writeln!(
        out,
        "  %{value}.all = call {{ i32, i32, i32, i32 }} asm sideeffect \"cpuid\", \"={{ax}},={{bx}},={{cx}},={{dx}},{{ax}},{{cx}}\"(i32 {leaf}, i32 {part})\n  %{value} = extractvalue {{ i32, i32, i32, i32 }} %{value}.all, {index}"
    );
}
