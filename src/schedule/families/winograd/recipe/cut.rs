//! How a convolution by Winograd's method is cut into kernels: three of them, or, where what is between those would leave the
//! second-level cache or there is less room, all in one, piece by piece or panel by panel.
use super::{BlockSplit, ProductPanels, Strips, Winograd, blocks, panels, strips};
use crate::hlo::attrs::ConvDims;
use crate::schedule::target::KernelTarget;
use std::fmt;

/// The division of a Winograd convolution into kernels.
#[derive(Clone, Debug)]
pub enum KernelSplit {
    /// Three kernels: all inputs are transformed, multiplied, transformed back. The weights are transformed for the panels that
    /// are multiplied, unless they are known.
    Whole(Option<ProductPanels>),
    /// Strip after strip in one kernel: some tiles one after another.
    Strips(Strips),
    /// Block after block in one kernel: some lines, and some tiles of each.
    Blocks(BlockSplit),
    /// All inputs are transformed, then panels of channels one after another have their weights transformed, are multiplied and
    /// transformed back.
    Panels(ProductPanels),
}

/// A convolution by Winograd's method and its division into kernels.
#[derive(Clone, Debug)]
pub struct WinogradSetup {
    /// The convolution.
    pub w: Winograd,
    /// Whether weights along several axes, or of pieces, are transformed at compile time.
    pub is_known: bool,
    /// The division into kernels.
    pub cut: KernelSplit,
}

impl WinogradSetup {
    /// Divides `w` into kernels whose scratch memory stays within `room`, if that is bounded.
    pub fn new(
        w: Winograd,
        d: &ConvDims,
        is_known: bool,
        room: Option<u64>,
        target: &KernelTarget<'_>,
    ) -> WinogradSetup {
        let cut = if w.is_one_dimensional() {
            split_along_one_axis(&w, d, room, target)
        } else {
            of_square(&w, d, is_known, room, target)
        };
        WinogradSetup { w, is_known, cut }
    }

    /// Whether weights that are transformed at each call could be transformed at compile time instead.
    pub fn could_pretransform(&self) -> bool {
        !self.w.is_one_dimensional() || matches!(self.cut, KernelSplit::Strips(_) | KernelSplit::Blocks(_))
    }
}

fn split_along_one_axis(w: &Winograd, d: &ConvDims, room: Option<u64>, target: &KernelTarget<'_>) -> KernelSplit {
    if let Some(strips) = strips::strips_along_one_axis(w, room, target) {
        return KernelSplit::Strips(strips);
    }
    if let Some(blocks) = blocks::choose(d, w, room, target) {
        return KernelSplit::Blocks(blocks);
    }
    let panels = panels::panels_along_one_axis(w, d, room, target);
    panels.map_or_else(|| KernelSplit::Whole(Some(panels::fused_kernel_panels(w, d, target))), KernelSplit::Panels)
}

fn of_square(w: &Winograd, d: &ConvDims, is_known: bool, room: Option<u64>, target: &KernelTarget<'_>) -> KernelSplit {
    let strips = strips::two_axis_strips(w, is_known, room, target);
    let panels = room.filter(|_| !is_known).and_then(|room| panels::two_axis_panels(w, d, room, target));
    let bytes = strips.as_ref().map_or(u64::MAX, |strips| strips.bytes(w, is_known));
    match (panels.filter(|panels| panels.bytes(w) < bytes), strips) {
        (Some(panels), _) => KernelSplit::Panels(panels),
        (None, Some(strips)) => KernelSplit::Strips(strips),
        (None, None) => KernelSplit::Whole((!is_known).then(|| panels::fused_kernel_panels(w, d, target))),
    }
}

impl fmt::Display for WinogradSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes: Vec<String> = self.w.along.iter().map(|a| format!("{}:{}", a.axis, a.size)).collect();
        let weights = if self.is_known { "known" } else { "transformed" };
        let stack = |is: bool| if is { " on the stack" } else { "" };
        let (cut, rows) = match &self.cut {
            KernelSplit::Whole(panels) => ("whole".to_string(), panels.as_ref().map(|p| &p.rows)),
            KernelSplit::Strips(s) => {
                let of = format!("{} bands of {} strips of {} tiles", s.bands, s.own, s.tiles * s.lines);
                (format!("{of}{}", stack(s.on_stack)), Some(&s.piece.rows))
            }
            KernelSplit::Blocks(b) => (format!("blocks of {} by {}", b.made[0], b.made[1]), Some(&b.piece.rows)),
            KernelSplit::Panels(p) => (format!("panels in {} groups{}", p.groups, stack(p.on_stack[0])), Some(&p.rows)),
        };
        let products = rows.map_or(String::new(), |rows| format!(", products {}", rows.tile));
        write!(f, "axes {}, weights {weights}, {cut}{products}", axes.join(" "))
    }
}
