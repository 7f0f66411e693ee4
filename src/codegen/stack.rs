//! The stack depth of an object's functions: frame sizes, which LLVM reports, along the longest path of calls.
//!
//! The graph of calls is that of the text which LLVM compiles. A function that is passed to another counts as called by it, as launches
//! of kernels do. Frames of functions outside of the object (`memcpy`, an executor, functions of the user) are not part of the depth.
use crate::target::{Arch, Target};
use std::collections::HashMap;

/// Bytes of the stack frames of functions by symbol; functions without a frame are missing.
pub type FrameSizes = HashMap<String, u64>;

/// The stack depth of each function of an object: the bytes that a call of it takes.
#[derive(Clone, Debug, Default)]
pub struct StackDepths(HashMap<String, u64>);

impl StackDepths {
    /// The most bytes of stack that a call of a function takes, with the return address; `None` for unknown symbols and recursive
    /// functions.
    pub fn stack_bytes(&self, symbol: &str) -> Option<u64> {
        self.0.get(symbol).copied()
    }

    /// Computes the stack depth of every function defined in the LLVM texts of a model.
    pub fn new(texts: &[String], frames: &FrameSizes, target: &Target, widest: u64) -> StackDepths {
        let functions = read(texts);
        let mut walk = Walk { functions: &functions, frames, target, widest, known: HashMap::new() };
        let depths = functions.keys().filter_map(|name| Some((name.to_string(), walk.depth(name)?)));
        StackDepths(depths.collect())
    }
}

/// A function in LLVM text, with what its stack depth depends on.
#[derive(Default)]
struct TextFunction<'t> {
    /// The functions that it calls or passes as arguments.
    calls: Vec<NamedFunction<'t>>,
    /// Whether it has stack arrays aligned to 64 bytes.
    has_aligned_arrays: bool,
    /// Whether it uses vectors, which may be saved in its frame.
    has_vectors: bool,
}

/// A reference to a function in a line of LLVM text.
struct NamedFunction<'t> {
    name: &'t str,
    /// The function called on that line, if it gets the reference as an argument.
    through: Option<&'t str>,
}

/// Parses the functions that LLVM texts define.
fn read(texts: &[String]) -> HashMap<&str, TextFunction<'_>> {
    let mut all = HashMap::new();
    for text in texts {
        let mut open: Option<(&str, TextFunction)> = None;
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("define ") {
                open = symbols(head).next().map(|name| (name, TextFunction::default()));
            } else if line == "}" {
                all.extend(open.take());
            } else if let Some((_, function)) = &mut open {
                function.has_aligned_arrays |= line.contains(" = alloca ") && line.ends_with("align 64");
                function.has_vectors |= line.contains('<');
                let called = line.contains("call ").then(|| symbols(line).next()).flatten();
                let named = symbols(line).enumerate();
                let calls = named.map(|(i, name)| NamedFunction { name, through: called.filter(|_| i > 0) });
                function.calls.extend(calls);
            }
        }
    }
    all
}

/// The symbols that occur in a line.
fn symbols(line: &str) -> impl Iterator<Item = &str> {
    line.split('@').skip(1).map(|rest| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '$');
        &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
    })
}

struct Walk<'a> {
    functions: &'a HashMap<&'a str, TextFunction<'a>>,
    frames: &'a FrameSizes,
    target: &'a Target,
    /// Size in bytes of the widest vector.
    widest: u64,
    /// The depth of each function; `None` while it is being computed, and if it is unbounded.
    known: HashMap<&'a str, Option<u64>>,
}

impl<'a> Walk<'a> {
    /// Computes the stack depth of a function; recursion is only as deep as calls in drivers: run, launch, kernel, math function.
    fn depth(&mut self, name: &str) -> Option<u64> {
        let (&name, function) = self.functions.get_key_value(name)?;
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        self.known.insert(name, None);
        let mut most = 0;
        for call in function.calls.iter().filter(|call| self.functions.contains_key(call.name)) {
            let through = call.through.filter(|through| self.functions.contains_key(through));
            most = most.max(self.depth(call.name)? + through.map_or(0, |through| self.frame(through)));
        }
        let depth = Some(self.frame(name) + most);
        self.known.insert(name, depth);
        depth
    }

    /// The frame size of a function in bytes, with the return address.
    fn frame(&self, name: &str) -> u64 {
        let (address, aligned) = match self.target.arch() {
            Arch::X86_64 => (8, 16),
            Arch::Aarch64 | Arch::Riscv64 | Arch::Wasm32 => (0, 16),
            Arch::Thumb => (0, 8),
        };
        let own = self.frames.get(name).copied().unwrap_or(0);
        let alignment = match self.functions.get(name) {
            Some(function) if function.has_aligned_arrays => self.widest.max(64),
            Some(function) if function.has_vectors => self.widest,
            _ => 0,
        };
        // a frame with wider alignment than the stack begins at a multiple of it, and its size is one
        let slack = if own > 0 && alignment > aligned { 2 * alignment } else { 0 };
        own + slack + address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "define void @run(ptr %x) #1 {\n  call void @launch(ptr %e, ptr @kernel, i64 3)\n  call void @memcpy(ptr %a)\n}\n\
        define internal void @launch(ptr %e, ptr %task, i64 %n) #1 {\n  call void %task(i64 %n)\n}\n\
        define internal void @kernel(i64 %n) #0 {\n  %b = alloca [8 x i8], align 64\n  %y = call float @slow(float %x)\n}\n\
        define internal float @slow(float %x) {\n  ret float %x\n}\n";

    fn depths(text: &str) -> StackDepths {
        let target = Target::resolve(Some("x86_64-unknown-linux-gnu"), Some("x86-64"), None).expect("a target");
        let frames = [("run", 100), ("launch", 24), ("kernel", 200)].map(|(name, n)| (name.to_string(), n)).into();
        StackDepths::new(&[text.to_string()], &frames, &target, 16)
    }

    #[test]
    fn what_is_passed_on_is_called() {
        let all = depths(TEXT);
        assert_eq!(all.stack_bytes("slow"), Some(8));
        assert_eq!(all.stack_bytes("kernel"), Some(200 + 128 + 8 + 8));
        assert_eq!(all.stack_bytes("run"), Some(108 + 32 + 344));
        assert_eq!(all.stack_bytes("memcpy"), None);
    }

    #[test]
    fn cycles_have_no_bound() {
        let text = TEXT.replace("ret float %x", "call float @kernel(float %x)");
        let all = depths(&text);
        assert_eq!((all.stack_bytes("run"), all.stack_bytes("slow")), (None, None));
    }
}
