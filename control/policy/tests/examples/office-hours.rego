# Console passwords and BMCs are seen in business hours only, whoever asks.
package site.office_hours

import rego.v1

methods := {
	"metalstack.admin.v2.MachineService/ConsolePassword",
	"metalstack.api.v2.MachineService/GetBMC",
	"metalstack.admin.v2.MachineService/GetBMC",
	"metalstack.admin.v2.MachineService/ListBMC",
}

deny contains {
	"rule": "closed",
	"message": "consoles are open from monday to friday, 07:00 to 18:00 UTC",
} if {
	not is_open
}

is_open if {
	not input.time.weekday in {"saturday", "sunday"}
	input.time.hour >= 7
	input.time.hour < 18
}

test_open if {
	count(deny) == 0 with input as {"time": {"weekday": "monday", "hour": 7}}
}

test_closed_in_the_evening if {
	count(deny) == 1 with input as {"time": {"weekday": "monday", "hour": 18}}
}

test_closed_on_sundays if {
	count(deny) == 1 with input as {"time": {"weekday": "sunday", "hour": 12}}
}
