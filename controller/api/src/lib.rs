//! Types of the compute API: CRDs, labels, annotations, condition types and reasons.
