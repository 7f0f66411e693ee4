//! What a page asks of its reader, in order.

/// A block of a page.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// A file, by the name in the line above it, with its content.
    File(String, String),
    /// Commands of a shell.
    Commands(String),
    /// What the commands before it print, among other things.
    Prints(String),
}

/// The blocks of `text`: `sh` are commands, `text` is what they print, one below a line such as `` `make.py`: `` is that file. A block
/// without a language repeats what stands elsewhere. Any other block is an error, with the number of its line.
pub fn steps(text: &str) -> Result<Vec<Step>, usize> {
    let mut steps = Vec::new();
    let mut above = "";
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            above = if line.trim().is_empty() { above } else { line };
            continue;
        };
        let content: String =
            lines.by_ref().map(|(_, l)| l).take_while(|l| *l != "```").flat_map(|l| [l, "\n"]).collect();
        let file = above.strip_prefix('`').and_then(|name| name.strip_suffix("`:"));
        match (language, file) {
            ("sh", None) => steps.push(Step::Commands(content)),
            ("text", None) => steps.push(Step::Prints(content)),
            ("", None) => {}
            (_, Some(file)) => steps.push(Step::File(file.to_string(), content)),
            _ => return Err(number + 1),
        }
        above = "";
    }
    Ok(steps)
}

#[test]
fn blocks_are_files_commands_and_what_is_printed() {
    let page = "# A\n\n`a.py`:\n\n```python\nx\n```\n\n```sh\nrun a\n```\n\n```text\n1\n```\n\n```\nelsewhere\n```\n";
    let want = [Step::File("a.py".into(), "x\n".into()), Step::Commands("run a\n".into()), Step::Prints("1\n".into())];
    assert_eq!(steps(page).as_deref(), Ok(&want[..]));
    assert_eq!(steps("text\n\n```python\nx\n```\n"), Err(3));
}
