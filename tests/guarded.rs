//! Arrays between pages that may not be touched: a fault names the array and is no plain crash.
#![expect(unsafe_code, reason = "touches memory that is forbidden, in a process of its own")]
use std::process::Command;
use tfaot::run::guard_pages::{self, GuardSide, GuardedBuffer};

/// Where a child is to touch, from the array's first byte on.
const TOUCH: &str = "TFAOT_TEST_TOUCH";

/// The child: an array of 20 bytes, touched where the parent says.
#[test]
fn child() {
    let Some(offset) = std::env::var(TOUCH).ok().and_then(|n| n.parse::<isize>().ok()) else { return };
    guard_pages::report_faults("error[TFA0901]: run: ");
    let edge = if offset < 0 { GuardSide::Begin } else { GuardSide::End };
    let array = GuardedBuffer::new(20, 4, edge, "result 3 `y`".to_string()).expect("memory");
    if offset == 5 {
        array.read_only().expect("protected");
    }
    // SAFETY: none; this is the fault that is tested, in a process that ends by it.
    unsafe { array.as_ptr().wrapping_offset(offset).write_volatile(1) };
    std::process::exit(0);
}

/// Exit status and standard error of a child.
fn touched(offset: isize) -> (Option<i32>, String) {
    let own = std::env::current_exe().expect("a test");
    let mut command = Command::new(own);
    let output = command.args(["--exact", "child", "--nocapture"]).env(TOUCH, offset.to_string()).output();
    let output = output.expect("the test starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_fault_names_the_array() {
    for (offset, what) in [
        (20, "touched memory 0 bytes behind the end of result 3 `y`"),
        (23, "touched memory 3 bytes behind the end of result 3 `y`"),
        (-1, "touched memory 1 bytes before result 3 `y`"),
        (5, "wrote to byte 5 of result 3 `y`"),
    ] {
        let (code, said) = touched(offset);
        assert_eq!(code, Some(1), "{offset}: {said}");
        assert!(said.contains("error[TFA0901]: run: compiled code ") && said.contains(what), "{offset}: {said}");
    }
    assert_eq!(touched(19).0, Some(0));
}

#[test]
fn other_faults_end_as_before() {
    let (code, said) = touched(1 << 46);
    assert!(code.is_none() && !said.contains("TFA0901"), "{code:?}: {said}");
}
