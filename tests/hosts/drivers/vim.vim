vim9script
# Vim: the cell in the kernel of the project, until its end is in the output.

def Touch(name: string)
  writefile([], $KERN_PLACE .. '/' .. name)
enddef

runtime plugin/kern.vim
edit code.py
set filetype=python
Touch('begun')
KernCell
while join(getbufline('kern://output', 1, '$'), "\n") !~ '--- python \[1\]: ok'
  sleep 1m
endwhile
Touch('shown')
sleep 3600
