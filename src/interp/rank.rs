//! Identity of a device among those that run a module.
use crate::hlo::Literal;
use crate::hlo::groups::Devices;
use crate::util::meetings::Meetings;

/// A device among those that run a module together.
#[derive(Clone, Copy)]
pub(super) struct Rank<'a> {
    /// Meeting point with the other devices.
    pub(super) meetings: &'a Meetings<Vec<Literal>>,
    /// All devices that run the module.
    pub(super) devices: Devices,
    /// Number of the device: replica times the number of partitions, plus partition.
    pub(super) rank: u32,
}

impl Rank<'_> {
    /// Replica number of the device.
    pub(super) fn replica(self) -> u32 {
        self.rank / self.devices.partitions
    }
    /// Partition number of the device, within its replica.
    pub(super) fn partition(self) -> u32 {
        self.rank % self.devices.partitions
    }
}
