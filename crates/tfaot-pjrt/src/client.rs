//! The client: devices, their memories, the threads of calls, and memory that calls work in.
use crate::boundary::{give, lend, object, slice, take, text};
use crate::c_api::base::NamedValue;
use crate::c_api::client::{
    ClientAddressableDevicesArgs, ClientAddressableMemoriesArgs, ClientCreateArgs, ClientDefaultDeviceAssignmentArgs,
    ClientDestroyArgs, ClientDevicesArgs, ClientLookupAddressableDeviceArgs, ClientLookupDeviceArgs,
    ClientPlatformNameArgs, ClientPlatformVersionArgs, ClientProcessIndexArgs, ClientTopologyDescriptionArgs,
};
use crate::device::{Device, DeviceDescription};
use crate::failure::{Code, Failure};
use crate::memory::{KINDS, Memory};
use crate::storage::Workspaces;
use crate::topology::Topology;
use std::sync::OnceLock;
use tfaot::Target;
use tfaot::run::{Executable, ThreadPool};

/// The name of the platform: programs for it are those for CPUs, so that JAX lowers them as for its own backend.
pub const PLATFORM: &str = "cpu";

/// The most devices that a client may have.
pub const MOST_DEVICES: usize = 1024;

/// `PJRT_Client`.
pub struct Client {
    devices: Vec<*mut Device>,
    memories: Vec<*mut Memory>,
    topology: Box<Topology>,
    threads: usize,
    pool: OnceLock<Option<ThreadPool>>,
    /// The processor at hand, for which programs are compiled.
    pub target: Target,
    /// Memory that calls work in.
    pub workspaces: Workspaces,
}

// SAFETY: devices and memories live as long as the client and do not change.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

/// What a caller may choose of a client.
struct Options {
    devices: i32,
    threads: usize,
}

impl Client {
    fn new(options: &Options) -> Result<Client, Failure> {
        if !Executable::SUPPORTED {
            let told = "the plugin runs on x86-64 processors under Linux alone";
            return Err(Failure::new(Code::Unimplemented, told));
        }
        let target = Target::resolve(None, None, None)?;
        let (mut devices, mut memories) = (Vec::new(), Vec::new());
        for id in 0..options.devices {
            let device = give(Device { description: DeviceDescription::new(id), memories: OnceLock::new() });
            let own: Vec<*mut Memory> = (0..KINDS.len())
                .map(|kind| give(Memory::new(id * KINDS.len() as i32 + kind as i32, kind, device)))
                .collect();
            memories.extend(own.iter().copied());
            let _ = object(device)?.memories.set(own);
            devices.push(device);
        }
        let topology = Box::new(Topology::new(options.devices));
        let (threads, pool) = (options.threads, OnceLock::new());
        Ok(Client { devices, memories, topology, threads, pool, target, workspaces: Workspaces::default() })
    }

    /// The threads of calls; none where calls run on the caller's thread alone.
    pub fn pool(&self) -> Option<&ThreadPool> {
        let start = || if self.threads > 1 { ThreadPool::new(self.threads).ok() } else { None };
        self.pool.get_or_init(start).as_ref()
    }

    /// The devices, by number.
    pub fn devices(&self) -> &[*mut Device] {
        &self.devices
    }

    /// The device with a number.
    ///
    /// # Errors
    /// `Code::NotFound`.
    pub fn device(&self, id: i64) -> Result<*mut Device, Failure> {
        let found = usize::try_from(id).ok().and_then(|id| self.devices.get(id)).copied();
        found.ok_or_else(|| Failure::new(Code::NotFound, format!("there is no device {id}")))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.memories.iter().for_each(|&memory| take(memory));
        self.devices.iter().for_each(|&device| take(device));
    }
}

impl Options {
    /// Reads `num_devices` and `num_threads`; anything else is refused.
    fn of(all: &[NamedValue]) -> Result<Options, Failure> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = Options { devices: 1, threads };
        for one in all {
            let name = text(one.name, one.name_size);
            if one.kind != 1 {
                return Err(Failure::new(Code::InvalidArgument, format!("option `{name}` is no integer")));
            }
            // SAFETY: the value is an integer, as was just seen.
            let value = unsafe { one.value.int64 };
            let bad = || Failure::new(Code::InvalidArgument, format!("option `{name}` is {value}"));
            if !(1..=MOST_DEVICES as i64).contains(&value) {
                return Err(bad());
            }
            match name.as_str() {
                "num_devices" => options.devices = i32::try_from(value).map_err(|_| bad())?,
                "num_threads" => options.threads = usize::try_from(value).map_err(|_| bad())?,
                _ => {
                    let told = format!("there is no option `{name}`: num_devices and num_threads are known");
                    return Err(Failure::new(Code::InvalidArgument, told));
                }
            }
        }
        Ok(options)
    }
}

/// `PJRT_Client_Create`.
pub fn create(args: &mut ClientCreateArgs) -> Result<(), Failure> {
    let options = Options::of(slice(args.create_options, args.num_options))?;
    args.client = give(Client::new(&options)?);
    Ok(())
}

/// `PJRT_Client_Destroy`.
pub fn destroy(args: &mut ClientDestroyArgs) -> Result<(), Failure> {
    take(args.client);
    Ok(())
}

/// `PJRT_Client_PlatformName`.
pub fn platform_name(args: &mut ClientPlatformNameArgs) -> Result<(), Failure> {
    lend(PLATFORM, &mut args.platform_name, &mut args.platform_name_size);
    Ok(())
}

/// `PJRT_Client_PlatformVersion`.
pub fn platform_version(args: &mut ClientPlatformVersionArgs) -> Result<(), Failure> {
    lend(version(), &mut args.platform_version, &mut args.platform_version_size);
    Ok(())
}

/// The version of tfaot and of LLVM, of which serialized executables are.
pub fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let (major, minor, patch) = tfaot::codegen::llvm_version();
        format!("tfaot {}, LLVM {major}.{minor}.{patch}", env!("CARGO_PKG_VERSION"))
    })
}

/// `PJRT_Client_ProcessIndex`.
pub fn process_index(args: &mut ClientProcessIndexArgs) -> Result<(), Failure> {
    args.process_index = 0;
    Ok(())
}

/// `PJRT_Client_TopologyDescription`.
pub fn topology(args: &mut ClientTopologyDescriptionArgs) -> Result<(), Failure> {
    args.topology = std::ptr::from_ref(&*object(args.client)?.topology).cast_mut();
    Ok(())
}

/// `PJRT_Client_Devices`.
pub fn devices(args: &mut ClientDevicesArgs) -> Result<(), Failure> {
    let all = object(args.client)?.devices();
    (args.devices, args.num_devices) = (all.as_ptr(), all.len());
    Ok(())
}

/// `PJRT_Client_AddressableDevices`.
pub fn addressable_devices(args: &mut ClientAddressableDevicesArgs) -> Result<(), Failure> {
    let all = object(args.client)?.devices();
    (args.addressable_devices, args.num_addressable_devices) = (all.as_ptr(), all.len());
    Ok(())
}

/// `PJRT_Client_LookupDevice`.
pub fn lookup_device(args: &mut ClientLookupDeviceArgs) -> Result<(), Failure> {
    args.device = object(args.client)?.device(args.id.into())?;
    Ok(())
}

/// `PJRT_Client_LookupAddressableDevice`.
pub fn lookup_addressable_device(args: &mut ClientLookupAddressableDeviceArgs) -> Result<(), Failure> {
    args.addressable_device = object(args.client)?.device(args.local_hardware_id.into())?;
    Ok(())
}

/// `PJRT_Client_AddressableMemories`.
pub fn addressable_memories(args: &mut ClientAddressableMemoriesArgs) -> Result<(), Failure> {
    let all = &object(args.client)?.memories;
    (args.addressable_memories, args.num_addressable_memories) = (all.as_ptr(), all.len());
    Ok(())
}

/// `PJRT_Client_DefaultDeviceAssignment`: devices in order.
pub fn default_device_assignment(args: &mut ClientDefaultDeviceAssignmentArgs) -> Result<(), Failure> {
    let wanted = i64::from(args.num_replicas) * i64::from(args.num_partitions);
    let has = object(args.client)?.devices().len();
    let count = usize::try_from(wanted).ok().filter(|&n| n <= has && n <= args.default_assignment_size);
    let Some(count) = count else {
        return Err(Failure::new(Code::InvalidArgument, format!("{wanted} devices are wanted of {has}")));
    };
    for i in 0..count {
        // SAFETY: the caller's array has `default_assignment_size` elements.
        unsafe { args.default_assignment.add(i).write(i as i32) };
    }
    Ok(())
}
