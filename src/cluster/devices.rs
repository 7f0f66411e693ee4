//! Parsed device names, and the choice of the device on which a cluster runs.
use crate::diag::{Code, Error, Result};

/// The kinds of devices that clustering distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceKind {
    /// `CPU`
    Cpu,
    /// `GPU`
    Gpu,
    /// `XLA_CPU`, `XLA_GPU`: devices on which every node is compiled.
    Xla,
    /// Any other device.
    Unknown,
}

/// A parsed device name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The device name as written in the graph.
    pub name: String,
    /// The device type that the name states.
    pub kind: DeviceKind,
    parts: [Option<String>; 5],
}

/// The default device of a node.
pub const CPU_0: &str = "/job:localhost/replica:0/task:0/device:CPU:0";

impl Device {
    /// Parses `/job:J/replica:R/task:T/device:TYPE:N`, parts of which may be missing. Errors: `BadGraph`.
    pub fn parse(name: &str) -> Result<Device> {
        let mut parts: [Option<String>; 5] = Default::default();
        for part in name.split('/').filter(|p| !p.is_empty()) {
            let (key, value) = part.split_once(':').unwrap_or((part, ""));
            let (kind, number) = match key {
                "job" => {
                    parts[0] = Some(value.to_string());
                    continue;
                }
                "replica" => {
                    parts[1] = Some(value.to_string());
                    continue;
                }
                "task" => {
                    parts[2] = Some(value.to_string());
                    continue;
                }
                "device" => value.split_once(':').unwrap_or((value, "*")),
                "cpu" | "CPU" => ("CPU", value),
                "gpu" | "GPU" => ("GPU", value),
                _ => return Err(Error::user(Code::BadGraph, format!("`{name}` is no name of a device"))),
            };
            parts[3] = Some(kind.to_uppercase()).filter(|k| k != "*");
            parts[4] = Some(number.to_string()).filter(|n| n != "*" && !n.is_empty());
        }
        let kind = match parts[3].as_deref() {
            Some("CPU") => DeviceKind::Cpu,
            Some("GPU") => DeviceKind::Gpu,
            Some("XLA_CPU" | "XLA_GPU") => DeviceKind::Xla,
            Some(_) | None => DeviceKind::Unknown,
        };
        Ok(Device { name: name.to_string(), kind, parts })
    }
    /// Whether the name states all five parts.
    pub fn is_fully_specified(&self) -> bool {
        self.parts.iter().all(Option::is_some)
    }
    /// Whether `other` agrees with every part that this name states.
    fn covers(&self, other: &Device) -> bool {
        self.parts.iter().zip(&other.parts).all(|(a, b)| a.is_none() || a == b)
    }
}

/// The devices of a graph, numbered.
#[derive(Default)]
pub struct DeviceTable {
    /// Devices by number.
    pub all: Vec<Device>,
}

impl DeviceTable {
    /// The number of the device called `name`, which is added if it is new. Errors: `BadGraph`.
    pub fn intern(&mut self, name: &str) -> Result<u16> {
        if let Some(at) = self.all.iter().position(|d| d.name == name) {
            return Ok(at as u16);
        }
        let device = Device::parse(name)?;
        let number = u16::try_from(self.all.len())
            .map_err(|_| Error::user(Code::TooLarge, "a graph names more than 65,536 devices"))?;
        self.all.push(device);
        Ok(number)
    }
    /// Completes a device name with the parts of [`CPU_0`].
    pub fn complete_name(name: &str) -> Result<String> {
        let (given, base) = (Device::parse(name)?, Device::parse(CPU_0)?);
        let parts: Vec<&str> =
            given.parts.iter().zip(&base.parts).map(|(g, b)| g.as_deref().or(b.as_deref()).unwrap_or("0")).collect();
        Ok(format!("/job:{}/replica:{}/task:{}/device:{}:{}", parts[0], parts[1], parts[2], parts[3], parts[4]))
    }
    /// The name of the CPU on the same task as a device.
    pub fn host_cpu(device: &Device) -> String {
        let part = |at: usize| device.parts[at].as_deref().unwrap_or("0");
        format!("/job:{}/replica:{}/task:{}/device:CPU:0", part(0), part(1), part(2))
    }
    /// The device for a cluster with nodes on the devices `set`: a GPU, else one of unknown kind, else a CPU; `None` if the devices are
    /// incompatible.
    pub fn choose_cluster_device(&self, set: &[u16]) -> Option<u16> {
        if let [only] = set {
            return Some(*only);
        }
        let (mut gpu, mut cpu, mut unknown) = (None, None, None);
        for &number in set {
            let place = match self.all[number as usize].kind {
                DeviceKind::Gpu => &mut gpu,
                DeviceKind::Cpu => &mut cpu,
                DeviceKind::Xla | DeviceKind::Unknown => &mut unknown,
            };
            *place = match *place {
                None => Some(number),
                Some(_) if !matches!(self.all[number as usize].kind, DeviceKind::Gpu | DeviceKind::Cpu) => return None,
                Some(have) => Some(self.narrower(have, number)?),
            };
        }
        match (gpu, unknown, cpu) {
            (Some(_), Some(_), _) | (_, Some(_), Some(_)) => None,
            (gpu, unknown, cpu) => gpu.or(unknown).or(cpu),
        }
    }
    fn narrower(&self, a: u16, b: u16) -> Option<u16> {
        let (x, y) = (&self.all[a as usize], &self.all[b as usize]);
        if x.covers(y) {
            Some(b)
        } else if y.covers(x) {
            Some(a)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_wins_over_a_cpu_and_two_cpus_do_not_mix() {
        let mut devices = DeviceTable::default();
        let mut number = |name: &str| devices.intern(name).expect("it parses");
        let (cpu0, cpu1) = (number(CPU_0), number("/job:localhost/replica:0/task:0/device:CPU:1"));
        let (gpu, any) = (number("/job:localhost/replica:0/task:0/device:GPU:0"), number("/device:CPU:*"));
        assert_eq!(devices.choose_cluster_device(&[cpu0, gpu]), Some(gpu));
        assert_eq!(devices.choose_cluster_device(&[cpu0, cpu1]), None);
        assert_eq!(devices.choose_cluster_device(&[any, cpu1]), Some(cpu1));
        assert!(Device::parse("nonsense").is_err());
        assert_eq!(
            DeviceTable::complete_name("/device:CPU:1").ok().as_deref(),
            Some("/job:localhost/replica:0/task:0/device:CPU:1")
        );
    }
}
