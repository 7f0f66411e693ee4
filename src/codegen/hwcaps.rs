//! How AArch64 and RISC-V code asks Linux which instructions it may use: two words of the list that the kernel hands to a process, which
//! C programs read with `getauxval`. Objects need no C library, so the code asks the kernel itself.
use crate::target::Arch;
use std::fmt::Write;

const FUNCTION: &str = "@tfaot.hwcaps";

/// Emits the comparison of Linux's two hardware capability words with the bits that code needs; returns the LLVM text that computes
/// `%answer`.
pub fn emit_hwcap_test(out: &mut String, needed: [u64; 2]) -> String {
    let [first, second] = needed;
    let _ = writeln!(
        out,
        "  %words = call {{ i64, i64 }} {FUNCTION}()\n  \
         %word0 = extractvalue {{ i64, i64 }} %words, 0\n  %mask0 = and i64 %word0, {first}\n  %has0 = icmp eq i64 %mask0, {first}\n  \
         %word1 = extractvalue {{ i64, i64 }} %words, 1\n  %mask1 = and i64 %word1, {second}\n  %has1 = icmp eq i64 %mask1, {second}\n  \
         %both = and i1 %has0, %has1\n  %won = select i1 %both, i32 2, i32 1"
    );
    "[ %won, %ask ]".to_string()
}

/// Definitions of the helper functions that `text` calls to read the hardware capabilities; empty where it calls none.
pub fn helper_functions(text: &str, arch: Arch) -> String {
    if text.contains(FUNCTION) { format!("{}{HWCAPS}", system(arch)) } else { String::new() }
}

/// The LLVM text of a function that makes a Linux system call, by its number and arguments.
fn system(arch: Arch) -> String {
    let (call, registers) = match arch {
        Arch::Riscv64 => ("ecall", "={x10},{x17},{x10},{x11},{x12},{x13},{x14},~{memory}"),
        _ => ("svc #0", "={x0},{x8},{x0},{x1},{x2},{x3},{x4},~{cc},~{memory}"),
    };
    format!(
        r#"define internal i64 @tfaot.system(i64 %number, i64 %a, i64 %b, i64 %c, i64 %d, i64 %e) noinline nounwind "no-builtins" {{
  %result = call i64 asm sideeffect "{call}", "{registers}"(i64 %number, i64 %a, i64 %b, i64 %c, i64 %d, i64 %e)
  ret i64 %result
}}
"#
    )
}

/// The words `AT_HWCAP` and `AT_HWCAP2`; zeros where the kernel tells neither way, so that then nothing is supported that not
/// every processor has. `prctl(PR_GET_AUXV)` is there since Linux 6.4 and needs no file; before, the list is
/// `/proc/self/auxv`. It has pairs of a number and a value, 25 at most, of which the last has the number 0. Numbers of calls are
/// those of `asm-generic/unistd.h`, numbers of pairs those of `uapi/linux/auxvec.h`.
const HWCAPS: &str = r#"
@tfaot.auxv = private unnamed_addr constant [16 x i8] c"/proc/self/auxv\00"

define internal { i64, i64 } @tfaot.hwcaps() noinline nounwind "no-builtins" {
entry:
  %list = alloca [128 x i64], align 16
  %to = ptrtoint ptr %list to i64
  ; prctl(PR_GET_AUXV, list, 1024, 0, 0)
  %told = call i64 @tfaot.system(i64 167, i64 1096112214, i64 %to, i64 1024, i64 0, i64 0)
  %is.told = icmp sgt i64 %told, 0
  br i1 %is.told, label %pairs, label %open
open:
  ; openat(AT_FDCWD, "/proc/self/auxv", O_RDONLY | O_CLOEXEC, 0)
  %path = ptrtoint ptr @tfaot.auxv to i64
  %file = call i64 @tfaot.system(i64 56, i64 -100, i64 %path, i64 524288, i64 0, i64 0)
  %is.open = icmp sge i64 %file, 0
  br i1 %is.open, label %read, label %none
read:
  ; read(file, list, 1024), close(file)
  %got = call i64 @tfaot.system(i64 63, i64 %file, i64 %to, i64 1024, i64 0, i64 0)
  %closed = call i64 @tfaot.system(i64 57, i64 %file, i64 0, i64 0, i64 0, i64 0)
  %is.read = icmp sgt i64 %got, 0
  br i1 %is.read, label %pairs, label %none
none:
  ret { i64, i64 } zeroinitializer
pairs:
  %bytes = phi i64 [ %told, %entry ], [ %got, %read ]
  %whole = icmp slt i64 %bytes, 1024
  %known = select i1 %whole, i64 %bytes, i64 1024
  %count = lshr i64 %known, 4
  br label %head
head:
  %i = phi i64 [ 0, %pairs ], [ %next, %pair ]
  %first = phi i64 [ 0, %pairs ], [ %first.now, %pair ]
  %second = phi i64 [ 0, %pairs ], [ %second.now, %pair ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %pair, label %done
pair:
  %at = shl i64 %i, 1
  %number.at = getelementptr i64, ptr %list, i64 %at
  %number = load i64, ptr %number.at
  %value.at = getelementptr i8, ptr %number.at, i64 8
  %value = load i64, ptr %value.at
  ; AT_HWCAP, AT_HWCAP2
  %is.first = icmp eq i64 %number, 16
  %first.now = select i1 %is.first, i64 %value, i64 %first
  %is.second = icmp eq i64 %number, 26
  %second.now = select i1 %is.second, i64 %value, i64 %second
  %next = add i64 %i, 1
  %is.last = icmp eq i64 %number, 0
  br i1 %is.last, label %done, label %head
done:
  %w0 = phi i64 [ %first, %head ], [ %first.now, %pair ]
  %w1 = phi i64 [ %second, %head ], [ %second.now, %pair ]
  %half = insertvalue { i64, i64 } poison, i64 %w0, 0
  %words = insertvalue { i64, i64 } %half, i64 %w1, 1
  ret { i64, i64 } %words
}
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;
    use std::process::Command;

    /// Kernels that tell by the call, by the file alone, not at all, and a list without an end.
    const KERNELS: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
struct words { uint64_t first, second; } hwcaps(void);
enum { CALL, FILE_ALONE, NEITHER, ENDLESS } kernel;
static const uint64_t list[] = {33, 1, 16, 0x123, 6, 4096, 26, 0x456, 0, 0, 16, 7, 26, 7};
static int open_files;
int64_t system_call(int64_t number, int64_t a, int64_t b, int64_t c) {
  if (number == 167 && a == 0x41555856 && c == 1024) { /* prctl */
    if (kernel == CALL) return memcpy((void *)b, list, sizeof list), (int64_t)sizeof list;
    if (kernel == ENDLESS) return memset((void *)b, 1, 1024), 4096;
    return -22;
  }
  if (number == 56 && !strcmp((const char *)b, "/proc/self/auxv")) return kernel == NEITHER ? -2 : (open_files++, 3);
  if (number == 63 && a == 3) return memcpy((void *)b, list, sizeof list), (int64_t)sizeof list;
  if (number == 57 && a == 3) return open_files--, 0;
  return -38;
}
int main(void) {
  for (kernel = CALL; kernel <= ENDLESS; kernel++) {
    struct words words = hwcaps();
    printf("%x %x;", (unsigned)words.first, (unsigned)words.second);
  }
  printf(" %d", open_files);
}
"#;

    /// Needs gcc on x86-64, which then plays the kernel.
    #[test]
    fn kernels_are_asked_in_both_ways() {
        let text = format!("declare i64 @system_call(i64, i64, i64, i64, i64, i64)\n{HWCAPS}");
        let text = text
            .replace("@tfaot.system", "@system_call")
            .replace("internal { i64, i64 } @tfaot.hwcaps", "{ i64, i64 } @hwcaps");
        let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64"), None).expect("a target");
        let object = super::super::llvm::compile_object(&text, &target).expect("LLVM takes it");
        let folder = tempfile::tempdir().expect("a scratch folder");
        let at = |file: &str| folder.path().join(file);
        std::fs::write(at("hwcaps.o"), object).expect("written");
        std::fs::write(at("kernels.c"), KERNELS).expect("written");
        let built = Command::new("gcc").args(["kernels.c", "hwcaps.o", "-o", "kernels"]).current_dir(&folder).output();
        let Some(built) = built.ok().filter(|_| cfg!(target_arch = "x86_64")) else { return };
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let said = Command::new(at("kernels")).output().expect("it runs").stdout;
        assert_eq!(String::from_utf8_lossy(&said), "123 456;123 456;0 0;0 0; 0");
    }
}
