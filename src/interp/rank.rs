//! A device among others.
use crate::hlo::Literal;
use crate::hlo::groups::Devices;
use crate::util::meetings::Meetings;

/// A device among others.
#[derive(Clone, Copy)]
pub(super) struct Rank<'a> {
    /// Where it meets the others.
    pub(super) meetings: &'a Meetings<Vec<Literal>>,
    /// All of them.
    pub(super) devices: Devices,
    /// Its number.
    pub(super) rank: u32,
}

impl Rank<'_> {
    /// Which replica it is.
    pub(super) fn replica(self) -> u32 {
        self.rank / self.devices.partitions
    }
    /// Which partition of it.
    pub(super) fn partition(self) -> u32 {
        self.rank % self.devices.partitions
    }
}
