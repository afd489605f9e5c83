//! A Redfish client for what bare metal needs: power, boot, LED, inventory.
