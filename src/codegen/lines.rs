//! Debug locations of instructions: lines of a source by which each instruction is attributed to a statement of its kernel. LLVM carries them
//! to the assembly (`.loc`). The source is the text of the kernel (`kernel::print_program`).
use std::collections::BTreeSet;
use std::fmt::Write;

/// Placeholder before the line number, of [`DIGITS`] digits, at each instruction until the number of its function is known.
const MARK: &str = "!dbg @";
const DIGITS: usize = 6;

/// The placeholder for debug metadata at the end of an instruction, with its line; line 0 is the whole function.
pub fn line_mark(line: u32) -> String {
    format!("{MARK}{line:0DIGITS$}")
}

/// The debug metadata numbers of the lines of a module's functions.
#[derive(Default)]
pub struct LineTable {
    count: usize,
    nodes: String,
}

impl LineTable {
    /// Replaces the line placeholders in a function's text by metadata numbers of the module.
    pub fn resolve_marks(&mut self, text: &str) -> String {
        self.count += 1;
        let own = self.count;
        let digits = |(at, _): (usize, &str)| text.get(at + MARK.len()..at + MARK.len() + DIGITS);
        let used: BTreeSet<&str> = text.match_indices(MARK).filter_map(digits).collect();
        let function = "0".repeat(DIGITS);
        for line in used {
            let _ = match line.trim_start_matches('0') {
                "" => writeln!(
                    self.nodes,
                    "!{own}{line} = distinct !DISubprogram(name: \"k{own}\", file: !1, line: 1, type: !2, unit: !0, spFlags: DISPFlagDefinition)"
                ),
                number => writeln!(
                    self.nodes,
                    "!{own}{line} = !DILocation(line: {number}, column: 1, scope: !{own}{function})"
                ),
            };
        }
        text.replace(MARK, &format!("!dbg !{own}"))
    }

    /// The text of the module's debug metadata.
    pub fn metadata(self) -> String {
        let head = "!llvm.dbg.cu = !{!0}\n!llvm.module.flags = !{!3}\n\
             !0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, emissionKind: LineTablesOnly)\n\
             !1 = !DIFile(filename: \"kernels\", directory: \"\")\n\
             !2 = !DISubroutineType(types: !4)\n!3 = !{i32 2, !\"Debug Info Version\", i32 3}\n!4 = !{}\n";
        format!("{head}{}", self.nodes)
    }
}

/// Removes line and frame directives from a function's assembly; also returns the kernel line of each line of assembly, 0 for instructions
/// between statements, such as register copies before a loop.
pub fn strip_directives(assembly: &str) -> (String, Vec<u32>) {
    let (mut text, mut lines, mut current) = (String::new(), Vec::new(), 0);
    for line in assembly.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if first == ".loc" {
            current = words.nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
        } else if !["Ltmp", "Lfunc_begin", "cfi_", "file"]
            .iter()
            .any(|own| first.trim_start_matches('.').starts_with(own))
        {
            text += line;
            text.push('\n');
            let is_instruction = line.starts_with(char::is_whitespace) && !first.starts_with('.');
            lines.push(if is_instruction { current } else { 0 });
        }
    }
    (text, lines)
}
