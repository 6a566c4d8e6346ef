include: "workflow/Snakefile"


# An include never sets the default target.
workflow.default_target = workflow.modifier.modify_rulename("all")
