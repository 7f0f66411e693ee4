//! `tfaot explain`: what a code means.
use super::{Verdict, args::ExplainArgs, out};
use crate::diag::codes::{CODES, CodeRow};
use crate::diag::{Code, Diagnostic, Result};

/// Prints the page of a code, or the list of all.
pub fn run(args: &ExplainArgs) -> Result<Verdict> {
    let Some(text) = &args.code else {
        let lines: Vec<_> = CODES.iter().map(|r| format!("{}  {:18} {}\n", r.code.id(), r.slug, r.about)).collect();
        return out::text(&lines.concat()).map(|()| Verdict::Yes);
    };
    let row = Code::parse(text).ok_or_else(|| {
        Diagnostic::new(Code::BadOption, format!("`{text}` is no diagnostic code"))
            .help("`tfaot explain` without a code lists all of them")
    })?;
    out::text(&page(row))?;
    Ok(Verdict::Yes)
}

fn page(row: &CodeRow) -> String {
    format!("{}: {}\n\n{}\n\nWhat helps: {}\n", row.code.id(), row.slug, row.about, row.cure)
}
