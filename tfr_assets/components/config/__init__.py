"""A dataset's YAML: the component, its fields and their errors, the scaffold, and loading all of a project.

component   `TFRecordDataset`: fields in, definitions out
fields      `DatasetOptions`: the fields, from which the YAML's model, the scaffold and the reference are made
translation how assets appear in the catalog
yaml_errors, yaml_files     the YAML's model; what is wrong, with its line
load        all datasets of a project, or the one that a command needs
broken      what stands in the place of a dataset that cannot be loaded
"""
