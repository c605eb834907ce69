//! Hosts interpreter modules as a Karmada ResourceInterpreterWebhook.
