"""A dataset's YAML: the component, its fields and their errors, the scaffold, and loading all of a project.

component   `TFRecordDataset`: fields in, definitions out
fields      one parser a field
yaml_errors, yaml_files     what is wrong, with its line
load        all datasets of a project, or the one that a command needs
broken      what stands in the place of a dataset that cannot be loaded
"""
