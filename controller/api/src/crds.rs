//! The CRDs as they are shipped.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use crate::WorkloadDeployment;

/// Every CRD of the compute API, ordered by name.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut all = vec![WorkloadDeployment::crd()];
    all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    for crd in &mut all {
        let schemas = crd
            .spec
            .versions
            .iter_mut()
            .filter_map(|version| version.schema.as_mut());
        for schema in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
            refuse_null(schema);
        }
    }
    all
}

/// Takes `nullable` out of a schema. The derive gives it to every optional field, but absent and null are two
/// spellings of one thing that writers in Go never use; without it the API server refuses or drops a null.
fn refuse_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    for property in schema
        .properties
        .iter_mut()
        .flat_map(|properties| properties.values_mut())
    {
        refuse_null(property);
    }
    match schema.items.as_mut() {
        Some(JSONSchemaPropsOrArray::Schema(item)) => refuse_null(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(refuse_null),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = schema.additional_properties.as_mut() {
        refuse_null(values);
    }
}
