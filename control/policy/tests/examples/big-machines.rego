# Machines of the size g1-large are for the tenant research alone.
package site.big_machines

import rego.v1

methods := {"metalstack.api.v2.MachineService/Create"}

owners := {"g1-large": "research"}

# A request names a size, or a machine that has one.
size := input.request.size

size := input.resource.size if not input.request.size

deny contains {
	"rule": "size-of-another-tenant",
	"message": sprintf("size %s is for the tenant %s", [size, owners[size]]),
} if {
	owners[size] != input.subject.tenant
}

asks(tenant, size) := {"subject": {"tenant": tenant}, "request": {"size": size}}

test_research_gets_it if {
	count(deny) == 0 with input as asks("research", "g1-large")
}

test_others_do_not if {
	count(deny) == 1 with input as asks("acme", "g1-large")
}

test_nor_by_naming_a_machine if {
	count(deny) == 1 with input as {
		"subject": {"tenant": "acme"},
		"request": {"uuid": "1"},
		"resource": {"size": "g1-large"},
	}
}

test_other_sizes_are_free if {
	count(deny) == 0 with input as asks("acme", "c1-small")
}
