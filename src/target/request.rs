//! Wishes about the code for a machine.
use super::tiles::TileProduct;
use super::{Arch, IsaLevel, MathType, Precision, Target, Tuning};
use crate::diag::{Code, Diagnostic, Result};

/// A target machine with the user's options for its code: precision, tuned choices, plans.
///
/// ```
/// use tfaot::target::{Precision, WeightType};
/// use tfaot::{CodeRequest, Target};
///
/// let board = Target::resolve(Some("aarch64-unknown-linux-gnu"), Some("cortex-a72"), None)?;
/// let small = CodeRequest::new(board, Precision { weights: WeightType::Bf16, ..Precision::default() })?;
/// assert_eq!(small.target.cpu, "cortex-a72");
/// # Ok::<(), tfaot::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CodeRequest {
    /// The machine.
    pub target: Target,
    /// The precision of stored constants and of arithmetic.
    pub precision: Precision,
    /// Measured choices that override the cost model.
    pub tuning: Tuning,
    /// Plans that the code follows, as `compile --emit plan` writes them.
    pub plans: Option<String>,
}

impl From<Target> for CodeRequest {
    fn from(target: Target) -> Self {
        CodeRequest { target, precision: Precision::default(), tuning: Tuning::default(), plans: None }
    }
}

impl From<&Target> for CodeRequest {
    fn from(target: &Target) -> Self {
        target.clone().into()
    }
}

impl From<&CodeRequest> for CodeRequest {
    fn from(request: &CodeRequest) -> Self {
        request.clone()
    }
}

impl CodeRequest {
    /// A request for code of this precision, which enables the target features that the precision needs.
    ///
    /// # Errors
    /// `Code::NoBf16Math` where the machine can't.
    pub fn new(mut target: Target, precision: Precision) -> Result<CodeRequest> {
        if precision.math == MathType::Bf16 {
            let Some(sums) = target.bf16_dot else {
                let told =
                    format!("`--math bf16` needs an instruction, and {} ({}) has none", target.cpu, target.triple);
                let help = match target.arch() {
                    Arch::X86_64 => {
                        "--cpu znver4, znver5, sapphirerapids or graniterapids, or --features +avx512bf16; "
                    }
                    Arch::Aarch64 => "--cpu neoverse-v1, neoverse-n2 or apple-m2, or --features +bf16; ",
                    Arch::Riscv64 | Arch::Wasm32 | Arch::Thumb => "",
                };
                return Err(Diagnostic::new(Code::NoBf16Math, told)
                    .help(format!("{help}--weights bf16 needs no such instruction"))
                    .into());
            };
            target.enable_instruction(sums);
            if target.bf16_tiles {
                target.enable_tiles(TileProduct::Bf16);
            }
        }
        Ok(CodeRequest { precision, ..target.into() })
    }

    /// An ordering key for instruction sets, the newer the larger: the level, whether code may use tiles, and on AArch64 the features of the
    /// code, by their number first.
    pub fn instruction_set_order(&self) -> (IsaLevel, bool, usize, Vec<&'static str>) {
        let Target { level, bf16_tiles, byte_tiles, .. } = self.target;
        let features = if level == IsaLevel::Neon { self.target.hwcap_features() } else { Vec::new() };
        let has_tiles =
            bf16_tiles && self.precision.math == MathType::Bf16 || byte_tiles && !self.precision.math.is_portable();
        (level, has_tiles, features.len(), features)
    }
}
