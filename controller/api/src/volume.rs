//! Volumes of an instance.

use k8s_openapi::api::core::v1::{ConfigMapVolumeSource, SecretVolumeSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue;
use crate::quantity::{Quantities, quantities};
use crate::template::TemplateMetadata;

/// A volume; exactly one source is set (checked at admission).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Name, unique in the instance.
    pub name: String,
    /// A disk that is made for the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskVolumeSource>,
    /// Keys of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapVolumeSource>,
    /// Keys of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretVolumeSource>,
}

/// A disk that is made for the instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskVolumeSource {
    /// Device name in the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// What the disk is made from.
    pub template: DiskTemplate,
}

/// What a disk is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskTemplate {
    /// Labels and annotations of the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The disk.
    pub spec: DiskSpec,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskSpec {
    /// Class of the disk.
    #[serde(rename = "type", default = "default_disk_type")]
    pub type_: String,
    /// Size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<DiskResources>,
    /// What the disk holds at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub populator: Option<DiskPopulator>,
}

fn default_disk_type() -> String {
    catalogue::PD_STANDARD.to_owned()
}

/// Size of a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskResources {
    /// `storage` is the size.
    #[serde(default, skip_serializing_if = "Quantities::is_empty")]
    #[schemars(schema_with = "quantities")]
    pub requests: Quantities,
}

/// What a disk holds at first; exactly one field is set (checked at admission).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskPopulator {
    /// A disk image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImagePopulator>,
    /// An empty filesystem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<FilesystemPopulator>,
}

/// A disk image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImagePopulator {
    /// Name of the image.
    pub name: String,
}

/// An empty filesystem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilesystemPopulator {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: FilesystemType,
}

/// Types of filesystems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FilesystemType {
    /// ext4.
    Ext4,
}
