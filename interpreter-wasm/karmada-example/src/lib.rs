//! Interpreter of the example kind of Karmada (workload.example.io/v1alpha1 Workload).
