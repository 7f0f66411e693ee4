//! Modules that are called from a graph, converted for the sizes of their arguments there.
use super::convert;
use super::converter::{Converter, Host, ShapeAssertions};
use super::sizes::matches_declared;
use super::tree::ModuleTree;
use super::{bytecode, function};
use crate::diag::{Code, Diagnostic, Error, Result};
use crate::hlo::{InstId, Module, Op, Shape, symbolic};
use crate::util::id_vec::IdVec;
use bytes::Bytes;

/// A parsed module that has not been converted for any sizes yet.
pub struct UnspecializedModule(ModuleTree);

impl UnspecializedModule {
    /// Parses portable bytecode or text.
    ///
    /// # Errors
    /// Errors of [`super::parse`], and `Code::BadEncoding` for damaged bytes.
    pub fn read(bytes: &Bytes) -> Result<UnspecializedModule> {
        if bytecode::is_bytecode(bytes) {
            return bytecode::parse(bytes).map(UnspecializedModule);
        }
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| Error::user(Code::BadEncoding, "the module is neither bytecode nor text"))?;
        function::parse(text).map(UnspecializedModule)
    }
    /// Results of a call with `args`. Tokens, which order effects that compiled code does not have, are neither arguments nor
    /// results. `platform` is the index of the platform, for a module whose first argument asks for it; `checks` tells which of
    /// the module's assertions about sizes apply.
    ///
    /// # Errors
    /// `Code::ShapeMismatch` for arguments that do not fit, `Code::SeveralDevices`, and those of [`super::parse`].
    pub fn call(
        &self,
        host: &mut dyn Host,
        args: &[InstId],
        platform: Option<usize>,
        checks: ShapeAssertions,
    ) -> Result<Vec<InstId>> {
        let functions = &self.0;
        let entry = convert::entry(functions)?;
        let (extra, comps) = (functions.header.clone(), IdVec::new());
        Module::<u64> { name: entry.to_string(), comps, entry: crate::hlo::CompId(0), extra, replaceable: false }
            .require_single_device()?;
        let mut given = Vec::with_capacity(args.len());
        let mut rest = args.iter();
        for (i, (_, shape)) in functions.all[entry].body.args.iter().enumerate() {
            let b = host.builder();
            let id = match (platform, shape) {
                (Some(index), _) if i == 0 => convert::platform_index(b, shape, index)?,
                (_, Shape::Token) => b.add_inst(Op::AfterAll, &[]),
                // Next one of the op's own arguments.
                _ => {
                    *rest.next().ok_or_else(|| wrong(format!("the module takes more than {} arguments", args.len())))?
                }
            };
            if !matches_declared(b.shape(id), shape) {
                let place = args.len() - rest.len() - 1;
                return Err(wrong(format!("argument {place} of the module is {shape}, and gets {}", b.shape(id))));
            }
            given.push(id);
        }
        if rest.next().is_some() {
            return Err(wrong(format!("the module takes fewer than {} arguments", args.len())));
        }
        let mut results = Converter::new(host, functions, entry, checks)?.entry(entry, &given)?;
        let b = host.builder();
        results.retain(|&id| *b.shape(id) != symbolic::Shape::Token);
        Ok(results)
    }
}

fn wrong(message: String) -> Error {
    Diagnostic::new(Code::ShapeMismatch, message).into()
}
