vim9script
# The commands. What they do is in autoload/kern.vim, which is read at the first of them.

if !has('vim9script') || !has('job') || !has('channel')
  finish
endif
if exists('g:loaded_kern')
  finish
endif
g:loaded_kern = 1

import autoload 'kern.vim'

command! -range KernRun kern.Run(<line1>, <line2>)
command! -range KernBox kern.Run(<line1>, <line2>, 'box')
command! KernCell kern.Cell()
command! KernFile kern.File()
command! KernInterrupt kern.Interrupt()
command! KernRestart kern.Restart()
command! KernOutput kern.Output()
command! KernDoctor kern.Doctor()

nnoremap <silent> <Plug>(KernCell) <Cmd>KernCell<CR>
nnoremap <silent> <Plug>(KernLine) <Cmd>KernRun<CR>
xnoremap <silent> <Plug>(KernRun) :KernRun<CR>
nnoremap <silent> <Plug>(KernInterrupt) <Cmd>KernInterrupt<CR>
