# Who was invited into a project may power its machines, but not give them back.
package site.guests

import rego.v1

methods := {
	"metalstack.api.v2.MachineService/Delete",
	"metalstack.api.v2.MachineService/BMCCommand",
}

deny contains {"rule": "guests-delete-nothing", "message": "ask somebody of the tenant"} if {
	input.method.name == "Delete"
	input.relation.tenant == "guest"
}

# Power is an editor's business in the contract; here a guest who only views may switch, too.
allow contains "guests-switch-power" if {
	input.method.name == "BMCCommand"
	input.relation.tenant == "guest"
	input.caller.kind == "user"
	input.request.command in {
		"MACHINE_BMC_COMMAND_ON",
		"MACHINE_BMC_COMMAND_OFF",
		"MACHINE_BMC_COMMAND_CYCLE",
	}
}

guest_asks(method, command) := {
	"method": {"name": method},
	"relation": {"tenant": "guest", "project": "viewer"},
	"caller": {"kind": "user"},
	"request": {"command": command},
}

test_guests_delete_nothing if {
	some rule in deny with input as guest_asks("Delete", "")
	rule.rule == "guests-delete-nothing"
}

test_owners_delete if {
	count(deny) == 0 with input as {"method": {"name": "Delete"}, "relation": {"tenant": "owner"}}
}

test_guests_switch_power if {
	"guests-switch-power" in allow with input as guest_asks("BMCCommand", "MACHINE_BMC_COMMAND_ON")
}

test_guests_change_no_boot_order if {
	count(allow) == 0 with input as guest_asks("BMCCommand", "MACHINE_BMC_COMMAND_BOOT_TO_BIOS")
}
