"""Files of tasks: tasks by name, each with the options of a submit, what it waits for, and a matrix.

`reading` makes a `Workflow` of a file, with every problem at its line and column. `options` has the keys, `scalars` the
values, `matrix` the combinations, and `order` the tasks that wait for each other.
"""
