"""What a workflow that pays does with its keys: a model that follows calls and actions, for rules to look at.

The parts, each above the next: :mod:`model` and :mod:`build` (jobs and steps of a workflow, with those of the local
workflows and actions it uses); :mod:`gates` (what runs although the gate failed); :mod:`scripts` (commands of steps);
:mod:`sources` (where a text comes from); :mod:`secrets` (which keys an expression holds); :mod:`conditions`;
:mod:`frames` (what names mean in one file, for one caller); :mod:`product` (which action is this one).
"""
