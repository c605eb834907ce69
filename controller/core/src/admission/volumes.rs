//! Volumes and disks.

use std::collections::BTreeSet;

use popcell_api::{DiskPopulator, DiskSpec, DiskVolumeSource, InstanceSpec, Volume, catalogue};
use popcell_contract::quantity::{self, GIB};

use super::field::Faults;
use super::{INSTANCE, LONGEST_LIST};
use crate::fields::NO_ITEMS;

const SMALLEST: i128 = 10 * GIB;
const LARGEST: i128 = 100 * GIB;
/// What the only image needs.
const UBUNTU_SIZE: i128 = 25 * GIB;
/// Largest mode of a file.
const MAX_MODE: i32 = 0o777;

pub(super) fn check(instance: &InstanceSpec, faults: &mut Faults) {
    let attached = attached(instance);
    let mut names = BTreeSet::new();
    let mut devices = BTreeSet::new();
    let volumes = faults.at_most(&format!("{INSTANCE}.volumes"), &instance.volumes, LONGEST_LIST);
    for (index, volume) in volumes.iter().enumerate() {
        let path = format!("{INSTANCE}.volumes[{index}]");
        faults.dns_label(format!("{path}.name"), &volume.name);
        if !names.insert(volume.name.as_str()) {
            faults.duplicate(format!("{path}.name"), &volume.name);
        }
        if !attached.contains(volume.name.as_str()) {
            faults.invalid(
                format!("{path}.name"),
                volume.name.as_str(),
                "must be attached at least once",
            );
        }
        check_source(&path, volume, faults);
        if let Some(disk) = &volume.disk {
            let device = device_name(disk, index);
            check_disk(&format!("{path}.disk.template.spec"), &disk.template.spec, faults);
            if devices.contains(&device) {
                faults.duplicate(format!("{path}.disk.deviceName"), &device);
            }
            devices.insert(device);
        }
    }
}

fn device_name(disk: &DiskVolumeSource, index: usize) -> String {
    let given = disk.device_name.clone().filter(|name| !name.is_empty());
    given.unwrap_or_else(|| format!("persistent-disk-{index}"))
}

fn attached(instance: &InstanceSpec) -> BTreeSet<&str> {
    let runtime = &instance.runtime;
    let containers = runtime.sandbox.iter().flat_map(|sandbox| &sandbox.containers);
    let machine = runtime
        .virtual_machine
        .iter()
        .flat_map(|machine| &machine.volume_attachments);
    containers
        .flat_map(|container| &container.volume_attachments)
        .chain(machine)
        .map(|attachment| attachment.name.as_str())
        .collect()
}

fn check_source(path: &str, volume: &Volume, faults: &mut Faults) {
    const CHOICE: &str = "exactly one of disk, configMap and secret";
    let given = [
        volume.disk.is_some(),
        volume.config_map.is_some(),
        volume.secret.is_some(),
    ];
    match given.into_iter().filter(|given| *given).count() {
        0 => faults.required(path, CHOICE),
        1 => {}
        _ => faults.forbidden(path, CHOICE),
    }
    if let Some(source) = &volume.config_map {
        let path = format!("{path}.configMap");
        faults.object_name(format!("{path}.name"), &source.name);
        check_files(&path, source.default_mode, source.items.is_some(), faults);
    }
    if let Some(source) = &volume.secret {
        let path = format!("{path}.secret");
        faults.object_name(
            format!("{path}.secretName"),
            source.secret_name.as_deref().unwrap_or_default(),
        );
        check_files(&path, source.default_mode, source.items.is_some(), faults);
    }
}

fn check_files(path: &str, mode: Option<i32>, items: bool, faults: &mut Faults) {
    if let Some(mode) = mode
        && !(0..=MAX_MODE).contains(&mode)
    {
        let rule = "must be a number between 0 and 0777 (octal), both inclusive";
        faults.invalid(format!("{path}.defaultMode"), mode, rule);
    }
    if items {
        faults.forbidden(format!("{path}.items"), NO_ITEMS);
    }
}

fn check_disk(path: &str, disk: &DiskSpec, faults: &mut Faults) {
    if disk.type_ != catalogue::PD_STANDARD {
        faults.not_supported(format!("{path}.type"), &disk.type_, &[catalogue::PD_STANDARD]);
    }
    let needed = disk
        .populator
        .as_ref()
        .map(|populator| check_populator(path, populator, faults));
    let path = format!("{path}.resources.requests[storage]");
    let storage = disk
        .resources
        .as_ref()
        .and_then(|resources| resources.requests.get("storage"));
    let Some(storage) = storage else {
        if needed.unwrap_or_default() == 0 {
            faults.required(path, "nothing else says how large the disk is");
        }
        return;
    };
    let size = quantity::nano(&storage.0);
    let rule = match size {
        None => "must be a quantity",
        Some(size) if size < SMALLEST => "must be greater than or equal to 10Gi",
        Some(size) if size > LARGEST => "must be less than or equal to 100Gi",
        Some(size) if size % GIB != 0 => "must be a multiple of 1Gi",
        Some(size) if size < needed.unwrap_or_default() => "must be greater than or equal to the 25Gi of the image",
        Some(_) => return,
    };
    faults.invalid(path, storage.0.as_str(), rule);
}

/// The size that the content needs; 0 where it says nothing.
fn check_populator(path: &str, populator: &DiskPopulator, faults: &mut Faults) -> i128 {
    const CHOICE: &str = "exactly one of image and filesystem";
    let path = format!("{path}.populator");
    match (&populator.image, &populator.filesystem) {
        (None, None) => faults.required(path.as_str(), CHOICE),
        (Some(_), Some(_)) => faults.forbidden(path.as_str(), CHOICE),
        _ => {}
    }
    let Some(image) = &populator.image else {
        return 0;
    };
    if image.name != catalogue::UBUNTU_2204_LTS {
        faults.not_supported(format!("{path}.image.name"), &image.name, &[catalogue::UBUNTU_2204_LTS]);
    }
    UBUNTU_SIZE
}
