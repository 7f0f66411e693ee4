//! Topologies: the devices of a client, also without one.
use crate::boundary::{give, lend, object, take};
use crate::c_api::client::{
    TopologyDescriptionAttributesArgs, TopologyDescriptionCreateArgs, TopologyDescriptionDestroyArgs,
    TopologyDescriptionGetDeviceDescriptionsArgs, TopologyDescriptionPlatformNameArgs,
    TopologyDescriptionPlatformVersionArgs,
};
use crate::client::{PLATFORM, version};
use crate::device::DeviceDescription;
use crate::failure::Failure;

/// `PJRT_TopologyDescription`.
pub struct Topology {
    pointers: Vec<*mut DeviceDescription>,
}

// SAFETY: the descriptions do not change.
unsafe impl Send for Topology {}
// SAFETY: as above.
unsafe impl Sync for Topology {}

impl Topology {
    /// Devices from number 0 on.
    pub fn new(devices: i32) -> Topology {
        Topology { pointers: (0..devices).map(|id| give(DeviceDescription::new(id))).collect() }
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        self.pointers.iter().for_each(|&description| take(description));
    }
}

/// `PJRT_TopologyDescription_Create`: one device.
pub fn create(args: &mut TopologyDescriptionCreateArgs) -> Result<(), Failure> {
    args.topology = give(Topology::new(1));
    Ok(())
}

/// `PJRT_TopologyDescription_Destroy`.
pub fn destroy(args: &mut TopologyDescriptionDestroyArgs) -> Result<(), Failure> {
    take(args.topology);
    Ok(())
}

/// `PJRT_TopologyDescription_PlatformName`.
pub fn platform_name(args: &mut TopologyDescriptionPlatformNameArgs) -> Result<(), Failure> {
    lend(PLATFORM, &mut args.platform_name, &mut args.platform_name_size);
    Ok(())
}

/// `PJRT_TopologyDescription_PlatformVersion`.
pub fn platform_version(args: &mut TopologyDescriptionPlatformVersionArgs) -> Result<(), Failure> {
    lend(version(), &mut args.platform_version, &mut args.platform_version_size);
    Ok(())
}

/// `PJRT_TopologyDescription_GetDeviceDescriptions`.
pub fn device_descriptions(args: &mut TopologyDescriptionGetDeviceDescriptionsArgs) -> Result<(), Failure> {
    let all = &object(args.topology)?.pointers;
    (args.descriptions, args.num_descriptions) = (all.as_ptr(), all.len());
    Ok(())
}

/// `PJRT_TopologyDescription_Attributes`.
pub fn attributes(args: &mut TopologyDescriptionAttributesArgs) -> Result<(), Failure> {
    (args.attributes, args.num_attributes) = (std::ptr::null(), 0);
    Ok(())
}
