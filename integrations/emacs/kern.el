;;; kern.el --- Run a region, a cell or a buffer in a sandbox  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: languages, processes
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; `kern-mode' in a buffer of Python, JavaScript or shell code, and C-c % c for the cell around point.  Each project has one
;; session of the sidecar, and a kernel a language.  See README.md.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'kern-sidecar)
(require 'kern-show)

(defgroup kern nil "Run code in a sandbox." :group 'languages)

(defcustom kern-language nil
  "What runs the code; nil: by the major mode."
  :type '(choice (const nil) (const "python") (const "node") (const "typescript") (const "bash") (const "sh")))
(defcustom kern-run-in 'auto
  "Where code runs: in a kernel, which keeps its state, or in a fresh box.
Auto: a whole buffer in a box, the rest in a kernel."
  :type '(choice (const auto) (const kernel) (const box)))
(defcustom kern-workspace 'folder
  "What the code sees of your files.
The project to write, to read only, or nothing."
  :type '(choice (const folder) (const readonly) (const private)) :risky t)
(defcustom kern-protect '(".git" ".vscode" ".dir-locals.el")
  "Files and directories of the project that the code cannot write.
Other programs run what is in them."
  :type '(repeat string) :risky t)
(defcustom kern-markers '(".git" ".hg" "pyproject.toml" "package.json")
  "What a directory has that is a project."
  :type '(repeat string) :risky t)
(defcustom kern-network nil "Let the code use the network." :type 'boolean :risky t)
(defcustom kern-memory-mb 512 "Memory of a box or kernel in MiB." :type 'natnum)
(defcustom kern-timeout-s 30 "Deadline of a run in seconds." :type 'number)

(defconst kern--languages
  '((python-mode . "python") (js-mode . "node") (typescript-mode . "typescript") (sh-mode . "bash")))
(defconst kern--marker "^[ \t]*\\(?:#\\|//\\)[ \t]*%%")
(defconst kern--max-output-bytes (ash 1 20))

(defvar kern--sessions (make-hash-table :test #'equal) "Root, or \"\" -> plist of :id, :opened, :waiting, :kernels.")
(defvar kern--running nil "Plists of :id, :request, :kernel, :asked.")
(defvar kern--handles 0)

(defun kern--forget () "Sessions end with their sidecar." (clrhash kern--sessions))
(add-hook 'kern-sidecar-lost-functions #'kern--forget)

(defun kern--new-handle (kind) "A handle of KIND." (format "%s-%d" kind (cl-incf kern--handles)))

;;; The project

(defun kern--root ()
  "The directory that is this buffer's project, or \"\".
What has no marker above it, or is all of the home directory, is none."
  (when (file-remote-p default-directory) (user-error "Boxes are on this machine, and %s is not" default-directory))
  (let* ((home (file-truename (expand-file-name "~/")))
         (from (and buffer-file-name (file-name-directory (file-truename buffer-file-name))))
         (found (and from (locate-dominating-file
                           from (lambda (at) (or (equal (file-name-as-directory (file-truename at)) home)
                                                 (seq-some (lambda (one) (file-exists-p (expand-file-name one at))) kern-markers)))))))
    (if (or (null found) (member (file-name-as-directory (file-truename found)) (list home "/"))) ""
      (directory-file-name (file-truename found)))))

(defun kern--place (root)
  "Where ROOT is in a box, or nil."
  (unless (equal root "")
    (pcase kern-workspace
      ('folder "/workspace")
      ('readonly "/project")
      ('private nil)
      (_ (user-error "`kern-workspace' is %S" kern-workspace)))))

(defun kern--session-params (root)
  "What the boxes of ROOT are like."
  (let ((place (kern--place root)))
    `(:memoryMb ,kern-memory-mb :timeoutMs ,(round (* 1000 kern-timeout-s)) :network ,(if kern-network t :false)
      :maxOutputBytes ,kern--max-output-bytes :trackFiles :false
      ,@(cond ((null place) nil)
              ((equal place "/project") `(:mounts [(:source ,root :target ,place :mode "ro")] :cwd ,place))
              (t `(:workspace ,root :mounts ,(vconcat (mapcan (lambda (name) (kern--protected root place name)) kern-protect))))))))

(defun kern--protected (root place name)
  "A list of the mount that makes NAME of ROOT read-only at PLACE."
  (let ((source (file-truename (expand-file-name name root))))
    (when (and (string-prefix-p (concat root "/") source) (file-exists-p source))
      (let ((path (directory-file-name source)))
        `((:source ,path :target ,(concat place (substring path (length root))) :mode "ro"))))))

(defun kern--with-session (root then)
  "Call THEN with the session of ROOT and nil, or with nil and an error."
  (let ((session (gethash root kern--sessions)))
    (unless session
      (let ((made (list :id (kern--new-handle "session") :opened nil :waiting nil :kernels nil)))
        (kern-sidecar-request "session/open" `(:sessionId ,(plist-get made :id) ,@(kern--session-params root))
                              (lambda (_result error) (kern--opened root made error)))
        (setq session (puthash root made kern--sessions))))
    (if (plist-get session :opened) (funcall then session nil)
      (plist-put session :waiting (append (plist-get session :waiting) (list then))))))

(defun kern--opened (root session error)
  "SESSION of ROOT is open, unless there is an ERROR."
  (plist-put session :opened (not error))
  (when (and error (eq (gethash root kern--sessions) session)) (remhash root kern--sessions))
  (dolist (then (plist-get session :waiting)) (funcall then (unless error session) error))
  (plist-put session :waiting nil))

(defun kern--with-kernel (root language then)
  "Call THEN with the id of the kernel of LANGUAGE in ROOT and nil.
Or with nil and an error."
  (kern--with-session
   root
   (lambda (session error)
     (let ((known (assoc language (plist-get session :kernels))))
       (cond (error (funcall then nil error))
             (known (funcall then (cdr known) nil))
             (t (kern--open-kernel session language then)))))))

(defun kern--open-kernel (session language then)
  "Open a kernel of LANGUAGE in SESSION, for `kern--with-kernel', which has THEN."
  (let ((id (kern--new-handle "kernel")))
    ;; known at once: the sidecar takes what comes for it in order
    (plist-put session :kernels (cons (cons language id) (plist-get session :kernels)))
    (kern-sidecar-request "kernel/open" `(:kernelId ,id :sessionId ,(plist-get session :id) :language ,language)
                          (lambda (_result error)
                            (when error (plist-put session :kernels (assoc-delete-all language (plist-get session :kernels))))
                            (funcall then (unless error id) error)))))

;;; What runs

(defun kern--dedent (code)
  "CODE without the indentation that all its lines share."
  (let* ((lines (split-string code "\n"))
         (indents (mapcar (lambda (line) (and (string-match "\\`[ \t]*" line) (match-string 0 line)))
                          (seq-remove #'string-blank-p lines)))
         (shared (seq-reduce (lambda (a b) (or (fill-common-string-prefix a b) "")) (cdr indents) (or (car indents) ""))))
    (mapconcat (lambda (line) (if (string-prefix-p shared line) (substring line (length shared)) (string-trim-left line "[ \t]+")))
               lines "\n")))

(defun kern--cell ()
  "Beginning and end of the cell around point."
  (save-excursion
    (let ((at (point)))
      (end-of-line)
      (cons (if (re-search-backward kern--marker nil t) (point) (point-min))
            (progn (goto-char at)
                   (end-of-line)
                   (if (re-search-forward kern--marker nil t) (line-beginning-position) (point-max)))))))

(defun kern--language ()
  "What runs this buffer."
  (or kern-language (cdr (seq-find (lambda (one) (derived-mode-p (car one))) kern--languages))
      (user-error "Nothing here runs %s: set `kern-language'" major-mode)))

(defun kern--run (begin end where)
  "Run BEGIN to END; WHERE is cell, file or box."
  (let* ((language (kern--language))
         (root (kern--root))
         (place (kern--place root))
         (name (if buffer-file-name (file-name-nondirectory buffer-file-name) (buffer-name)))
         (first (line-number-at-pos begin t))
         (in-box (or (eq where 'box) (eq kern-run-in 'box)
                     (and (eq kern-run-in 'auto) (or (eq where 'file) (equal language "typescript")))))
         (last (max first (line-number-at-pos (max begin (1- end)) t)))
         (run (list :id (kern--new-handle "run") :request nil :kernel nil :asked nil :seen 0 :language language :in-box in-box
                    :root root :place place :buffer (current-buffer) :first first :title (format "%s, lines %d to %d" name first last)
                    :filename (if place (concat place (substring (file-truename buffer-file-name) (length root))) name)
                    :code (concat (make-string (1- first) ?\n) (kern--dedent (buffer-substring-no-properties begin end))))))
    (push run kern--running)
    (kern-show-open)
    (kern-show-unmark (current-buffer) begin end)
    (condition-case error
        (if in-box
            (kern--with-session root (lambda (session failed)
                                       (kern--start run "run/code" (and session `(:sessionId ,(plist-get session :id) :language ,language)) failed)))
          (kern--with-kernel root language (lambda (kernel failed) (kern--start run "kernel/run" `(:kernelId ,kernel) failed))))
      (error (kern--end run nil (list :message (error-message-string error)))))
    run))

(defun kern--start (run method target failed)
  "Send RUN as METHOD to TARGET, unless it has FAILED."
  (cond (failed (kern--end run nil failed))
        ((plist-get run :asked) (kern--end run nil '(:message "interrupted before it began")))
        (t (kern-show-line (concat "--- " (plist-get run :title)))
           (plist-put run :kernel (plist-get target :kernelId))
           (kern-sidecar-listen (plist-get run :id) (lambda (heard params) (kern--heard run heard params)))
           (plist-put run :request
                      (kern-sidecar-request
                       method `(:runId ,(plist-get run :id) :code ,(plist-get run :code) :filename ,(plist-get run :filename) :stream "live" ,@target
                               ,@(and (not (plist-get run :in-box)) (kern-sidecar-asks-p (plist-get run :language)) '(:allowInput t)))
                       (lambda (result error) (kern--end run result error)))))))

(defun kern--heard (run heard params)
  "RUN has written something, if that is what was HEARD; PARAMS say what."
  (when (and (equal heard "run/output") (plist-get params :text))
    (plist-put run :seen (+ (plist-get run :seen) (plist-get params :bytes)))
    (kern-show-text (plist-get params :text) (equal (plist-get params :stream) "stderr")))
  (when (equal heard "run/inputWanted")
    (run-at-time 0 nil #'kern--answer run params))) ; not in the middle of what came with it

(defun kern--answer (run wanted)
  "Ask for the line that is WANTED by RUN."
  (let ((line (kern-show-ask (plist-get wanted :prompt) (plist-get wanted :password))))
    (when (memq run kern--running) ; it may have ended meanwhile
      (kern-sidecar-request "run/stdin" `(:runId ,(plist-get run :id) ,@(if line `(:text ,(concat line "\n")) '(:eof t))) #'ignore))))

(defun kern--end (run result error)
  "RUN has ended with RESULT, or did not begin because of ERROR."
  (kern-sidecar-unlisten (plist-get run :id))
  (if error
      (let* ((data (plist-get error :data)) (hint (plist-get data :hint)))
        (kern-show-line (format "--- not run: %s%s" (plist-get error :message) (if hint (format " (%s)" hint) "")))
        (when (equal (plist-get data :reason) "kernel_dead") (kern-show-line "--- M-x kern-restart begins afresh"))
        (kern--done run))
    (let ((missed (- (+ (plist-get result :stdoutBytes) (plist-get result :stderrBytes)) (plist-get run :seen))))
      (when (> missed 0) (kern-show-line (format "[%d bytes came too fast to be shown here]" missed)))
      (dolist (note (kern--listed (plist-get result :runtimeNotes))) (kern-show-line (format "[%s]" (plist-get note :message))))
      (kern--values (kern--listed (plist-get result :results)) (lambda () (kern--close run result) (kern--done run))))))

(defun kern--done (run)
  "RUN is over."
  (setq kern--running (delq run kern--running))
  (force-mode-line-update t))

(defun kern--listed (value)
  "VALUE, a list; one that was too large for a line is left out."
  (and (not (plist-get (and (keywordp (car-safe value)) value) :blob)) value))

(defun kern--values (results done)
  "Show RESULTS one after another, then call DONE."
  (if (null results) (funcall done)
    (let* ((data (plist-get (car results) :data))
           (image (or (plist-get data :image/png) (plist-get data :image/jpeg)))
           (text (or (plist-get data :text/plain) (plist-get data :text/markdown))))
      (if image
          (kern-sidecar-read-image image (lambda (bytes)
                                           (kern-show-image bytes (if (plist-get data :image/png) "png" "jpg"))
                                           (kern--values (cdr results) done)))
        (kern-show-line (cond ((stringp text) text) (text "[a value too long to be shown]") (t "[a value that is no text]")))
        (kern--values (cdr results) done)))))

(defun kern--close (run result)
  "Say how RUN has ended, by RESULT, and mark what went wrong."
  (let* ((fault (plist-get result :fault)) (error (plist-get result :error)) (exit (plist-get result :exitCode))
         (interrupted (equal (plist-get result :cellStatus) "interrupted"))
         (how (cond (fault (format "%s: %s" (plist-get fault :type) (plist-get fault :message)))
                    (interrupted "interrupted") ((eql exit 0) "ok") (error (plist-get error :name)) (t (format "exit %d" exit)))))
    (kern-show-line (format "--- %s %s: %s, %.2f s%s" (plist-get run :language)
                            (if (plist-get run :in-box) "box" (format "[%s]" (plist-get result :executionCount)))
                            how (/ (plist-get result :durationMs) 1000.0)
                            (if (and (plist-member result :stateKept) (not (plist-get result :stateKept))) ", the state is lost" "")))
    (unless (or interrupted (and (eql exit 0) (not fault)) (equal (plist-get fault :type) "cancelled"))
      (pcase-dolist (`(,file ,line ,text) (kern--mistakes run result))
        (kern-show-mistake file line text)))))

(defun kern--mistakes (run result)
  "Where RESULT of RUN says that the mistake is.
Lists of a file name or buffer, a line and a text, the innermost last."
  (let* ((error (plist-get result :error)) (fault (plist-get result :fault)) (place (plist-get run :place)) (buffer (plist-get run :buffer))
         (here (plist-get run :filename)) (stderr (plist-get result :stderr)) found)
    (cond (error
           (let ((text (format "%s: %s" (plist-get error :name) (plist-get error :message))))
             (dolist (frame (plist-get error :frames))
               (let ((file (plist-get frame :file)))
                 (cond ((equal file here) (push (list buffer (plist-get frame :line) text) found))
                       ((and place (string-prefix-p (concat place "/") file))
                        (push (list (concat (plist-get run :root) (substring file (length place))) (plist-get frame :line) text) found)))))
             (or (nreverse found) (list (list buffer (plist-get run :first) text)))))
          ((and (stringp stderr) ; a shell
                (string-match (format "^[^ \n][^:\n]*?%s: line \\([0-9]+\\): \\(.*\\)$" (regexp-quote (file-name-nondirectory here))) stderr))
           (list (list buffer (string-to-number (match-string 1 stderr)) (match-string 2 stderr))))
          (fault (list (list buffer (plist-get run :first) (format "%s: %s" (plist-get fault :type) (plist-get fault :message))))))))

;;; Commands

;;;###autoload
(defun kern-run-region ()
  "Run the region, or the line."
  (interactive)
  (if (use-region-p)
      (kern--run (save-excursion (goto-char (region-beginning)) (skip-chars-backward " \t") (if (bolp) (point) (region-beginning))) (region-end) 'cell)
    (kern--run (line-beginning-position) (line-end-position) 'cell)))

;;;###autoload
(defun kern-run-cell ()
  "Run the cell around point, between lines of `# %%' or `// %%'."
  (interactive)
  (pcase-let ((`(,begin . ,end) (kern--cell))) (kern--run begin end 'cell)))

;;;###autoload
(defun kern-run-in-box ()
  "Run the region, or the cell around point, in a fresh box."
  (interactive)
  (pcase-let ((`(,begin . ,end) (if (use-region-p) (cons (region-beginning) (region-end)) (kern--cell)))) (kern--run begin end 'box)))

;;;###autoload
(defun kern-run-buffer ()
  "Run the buffer."
  (interactive)
  (kern--run (point-min) (point-max) 'file))

(defun kern-interrupt ()
  "Interrupt what runs.
A cell keeps its state; what is asked twice, and a box, is made to stop."
  (interactive)
  (dolist (run kern--running)
    (let ((kernel (plist-get run :kernel)) (request (plist-get run :request)))
      (cond ((and kernel request (not (plist-get run :asked))) (kern-sidecar-request "kernel/interrupt" `(:kernelId ,kernel) #'ignore))
            (request (kern-sidecar-cancel request)))
      (plist-put run :asked t))))

(defun kern-restart ()
  "End everything of this project; in the output buffer, of all.
The next run begins afresh, with the settings of then."
  (interactive)
  (dolist (root (if (derived-mode-p 'kern-show-mode) (hash-table-keys kern--sessions) (list (kern--root))))
    (when-let ((session (gethash root kern--sessions)))
      (remhash root kern--sessions)
      (kern-sidecar-request "session/close" `(:sessionId ,(plist-get session :id)) #'ignore))))

(defun kern-doctor ()
  "Tell what this machine enforces, and how to mend the rest."
  (interactive)
  (kern-sidecar-request
   "host/doctor" nil
   (lambda (report error)
     (kern-show-page
      "*kern doctor*"
      (concat (format "Emacs %s, %s\n\n" emacs-version (kern-sidecar-program))
              (if error (plist-get error :message) (if (plist-get report :ok) "Boxes start here.\n" "Boxes do NOT start here.\n"))
              (mapconcat (lambda (check)
                           (format "%-5s %s: %s\n%s" (plist-get check :status) (plist-get check :id) (plist-get check :found)
                                   (if (plist-get check :fix) (format "      cure: %s\n" (plist-get check :fix)) "")))
                         (kern--listed (plist-get report :checks)) ""))))))

(defvar kern-mode-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command) '(("c" . kern-run-cell) ("r" . kern-run-region) ("b" . kern-run-buffer) ("x" . kern-run-in-box) ("i" . kern-interrupt)
                                        ("R" . kern-restart) ("o" . kern-show-open) ("d" . kern-doctor)))
      (define-key map (kbd (concat "C-c % " key)) command))
    map))

;;;###autoload
(define-minor-mode kern-mode
  "Keys to run code in a sandbox, and its state in the mode line."
  :lighter (:eval (if kern--running " kern:busy" " kern")))

(provide 'kern)
;;; kern.el ends here
