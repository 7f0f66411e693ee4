//! `tfaot ops`: lists the op table.
use super::{ExitStatus, args::OpsArgs, out};
use crate::diag::Result;
use crate::ops::{LoweringFn, OpLowering};
use serde_json::json;

/// Prints the rows whose op name contains the filter.
pub fn run(args: &OpsArgs) -> Result<ExitStatus> {
    let filter = args.filter.as_deref().unwrap_or("").to_lowercase();
    let mut rows: Vec<_> = crate::ops::all_ops().filter(|(_, row)| row.name.to_lowercase().contains(&filter)).collect();
    rows.sort_by_key(|(_, row)| row.name);
    if args.json {
        let list: Vec<_> = rows.iter().map(|(family, row)| as_json(family, row)).collect();
        out::json(&list.into())?;
    } else {
        let width = rows.iter().map(|(_, row)| row.name.len()).max().unwrap_or(0);
        let lines: Vec<_> =
            rows.iter().map(|(family, row)| format!("{:width$}  {family:12}  {}\n", row.name, row.signature)).collect();
        out::text(&lines.concat())?;
    }
    Ok(ExitStatus::Yes)
}

fn as_json(family: &str, row: &OpLowering) -> serde_json::Value {
    let kind = match row.lower {
        LoweringFn::Node(_) => "node",
        LoweringFn::Unary(_) => "unary",
        LoweringFn::Binary(_) => "binary",
        LoweringFn::Walker(_) => "function call",
    };
    json!({"op": row.name, "family": family, "signature": row.signature, "kind": kind, "constants": row.constants, "dtypes": row.dtypes})
}
