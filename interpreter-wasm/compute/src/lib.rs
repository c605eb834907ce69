//! Karmada interpreter of WorkloadDeployment (compute.datumapis.com/v1alpha).
