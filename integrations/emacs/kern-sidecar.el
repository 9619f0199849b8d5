;;; kern-sidecar.el --- JSON-RPC with kern-sidecar  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; The sidecar: one process for this Emacs, started by the first request, an object a line in both directions.  It ends when its
;; stdin does, or when Emacs does, however that happens.

;;; Code:

(require 'seq)

(defconst kern-sidecar--max-line-bytes (ash 4 20))
(defconst kern-sidecar--piece-bytes (ash 1 20))

(defcustom kern-program nil
  "Absolute path of kern-sidecar.
Nil: `KERN_SIDECAR' of the environment, or the one in PATH."
  :type '(choice (const nil) file) :group 'kern :risky t)

(defvar kern-sidecar--process nil)
(defvar kern-sidecar--pending (make-hash-table) "Id -> function of (RESULT ERROR).")
(defvar kern-sidecar--listeners (make-hash-table :test #'equal) "RunId -> function of (METHOD PARAMS).")
(defvar kern-sidecar--next-id 0)
(defvar kern-sidecar--rest nil "Pieces of a line that has not ended, the last first.")
(defvar kern-sidecar--asks nil "Languages whose cells may ask for input.")
(defvar kern-sidecar-lost-functions nil "Called when the sidecar has ended, and everything in its boxes with it.")

(defun kern-sidecar-program ()
  "The program to start; an error when there is none.
One that was named and is wrong is not replaced by another."
  (let ((named (or kern-program (getenv "KERN_SIDECAR"))))
    (cond ((not named) (or (executable-find "kern-sidecar") (user-error "There is no kern-sidecar in PATH: set `kern-program'")))
          ((and (file-name-absolute-p named) (file-executable-p named) (not (file-directory-p named))) (expand-file-name named))
          (t (user-error "%s is not the absolute path of a program: set `kern-program'" named)))))

(defun kern-sidecar-live-p ()
  "Whether there is a sidecar."
  (process-live-p kern-sidecar--process))

(defun kern-sidecar--start ()
  "Start the sidecar."
  (unless (json-available-p) (user-error "This Emacs was built without JSON, which kern needs"))
  (let* ((default-directory "/")
         (process-adaptive-read-buffering nil) ; no waiting for more
         (stderr (generate-new-buffer " *kern-sidecar stderr*"))
         (process (make-process :name "kern-sidecar" :command (list (kern-sidecar-program) "--stdio") :connection-type 'pipe
                                :coding 'utf-8-unix :noquery t :stderr stderr
                                :filter #'kern-sidecar--filter :sentinel #'kern-sidecar--sentinel)))
    (when-let ((pipe (get-buffer-process stderr)))
      (set-process-query-on-exit-flag pipe nil)
      (set-process-sentinel pipe #'ignore)) ; no line of Emacs's own in it
    (process-put process 'stderr stderr)
    (setq kern-sidecar--process process kern-sidecar--rest nil)
    (kern-sidecar--send "initialize"
                        `(:protocolVersion 1 :client (:name "kern (emacs)" :version "0.1.0") :processId ,(emacs-pid)
                          :capabilities (:maxLineBytes ,kern-sidecar--max-line-bytes))
                        ;; when it is refused, so is everything else, which says so
                        (lambda (welcome _error)
                          (setq kern-sidecar--asks
                                (mapcar (lambda (one) (plist-get one :name))
                                        (seq-filter (lambda (one) (plist-get one :input))
                                                    (plist-get (plist-get welcome :capabilities) :languages))))))))

(defun kern-sidecar-asks-p (language)
  "Whether cells of LANGUAGE may ask; known once a session is open."
  (member language kern-sidecar--asks))

(defun kern-sidecar--write (message)
  "Write MESSAGE, a plist."
  (process-send-string kern-sidecar--process (concat (decode-coding-string (json-serialize message :false-object :false) 'utf-8) "\n")))

(defun kern-sidecar--send (method params done)
  "Send METHOD with PARAMS; DONE gets its end.  Returns the id."
  (let ((id (cl-incf kern-sidecar--next-id)))
    (puthash id done kern-sidecar--pending)
    (kern-sidecar--write `(:jsonrpc "2.0" :id ,id :method ,method :params ,params))
    id))

(defun kern-sidecar-request (method params done)
  "Send METHOD with PARAMS, a plist.  Returns the id.
DONE is called once, with a result and nil, or with nil and an error,
which means that nothing ran."
  (unless (kern-sidecar-live-p) (kern-sidecar--start))
  (kern-sidecar--send method params done))

(defun kern-sidecar-cancel (id)
  "Cancel the request ID."
  (when (kern-sidecar-live-p) (kern-sidecar--write `(:jsonrpc "2.0" :method "$/cancel" :params (:id ,id)))))

(defun kern-sidecar-listen (run-id heard)
  "HEARD gets the method and the params of every notification about RUN-ID."
  (puthash run-id heard kern-sidecar--listeners))

(defun kern-sidecar-unlisten (run-id)
  "No more about RUN-ID."
  (remhash run-id kern-sidecar--listeners))

(defun kern-sidecar--filter (process chunk)
  "Take lines out of what PROCESS wrote: CHUNK, and what came before."
  (when (eq process kern-sidecar--process)
    (let ((start 0) end)
      (while (setq end (string-search "\n" chunk start))
        (let ((line (apply #'concat (nreverse (cons (substring chunk start end) kern-sidecar--rest)))))
          (setq kern-sidecar--rest nil start (1+ end))
          (with-demoted-errors "kern: %S" ; one message that a function of ours fails on is not the end of the others
            (kern-sidecar--message (json-parse-string line :object-type 'plist :array-type 'list :null-object nil :false-object nil)))))
      (push (substring chunk start) kern-sidecar--rest))))

(defun kern-sidecar--message (message)
  "Hand MESSAGE to whom it is for."
  (if-let ((method (plist-get message :method)))
      (when-let ((heard (gethash (plist-get (plist-get message :params) :runId) kern-sidecar--listeners)))
        (funcall heard method (plist-get message :params)))
    (let* ((id (plist-get message :id)) (done (gethash id kern-sidecar--pending)))
      (remhash id kern-sidecar--pending)
      (when done (funcall done (plist-get message :result) (plist-get message :error))))))

(defun kern-sidecar--sentinel (process event)
  "Tell everybody who waits that PROCESS has ended, by EVENT."
  (when (and (eq process kern-sidecar--process) (not (process-live-p process)))
    (let* ((waiting (hash-table-values kern-sidecar--pending))
           (stderr (process-get process 'stderr))
           (said (if (buffer-live-p stderr) (string-trim (with-current-buffer stderr (buffer-string))) ""))
           (words (if (string-empty-p said) "" (concat ".  Its last words: " (substring said (max 0 (- (length said) 500)))))))
      (when (buffer-live-p stderr) (kill-buffer stderr))
      (setq kern-sidecar--process nil)
      (clrhash kern-sidecar--pending)
      (clrhash kern-sidecar--listeners)
      (run-hooks 'kern-sidecar-lost-functions)
      (dolist (done waiting)
        (funcall done nil `(:message ,(format "kern-sidecar ended (%s) before it answered%s" (string-trim event) words) :data (:reason "sidecar_lost")))))))

(defun kern-sidecar-read-image (image done &optional offset before)
  "Call DONE with the bytes of IMAGE, base64 in a line or bytes in a blob.
Of a blob that is gone it is nil.  BEFORE is what stands before OFFSET."
  (if-let ((blob (and (listp image) (plist-get image :blob))))
      (kern-sidecar-request
       "blob/read" `(:id ,(plist-get blob :id) :offset ,(or offset 0) :length ,kern-sidecar--piece-bytes)
       (lambda (piece error)
         (let ((whole (concat before (if (plist-get piece :base64) (base64-decode-string (plist-get piece :base64))
                                       (encode-coding-string (or (plist-get piece :text) "") 'utf-8)))))
           (cond (error (funcall done nil))
                 ((plist-get piece :eof) (funcall done whole))
                 (t (kern-sidecar-read-image image done (plist-get piece :nextOffset) whole))))))
    (funcall done (base64-decode-string (if (stringp image) image (plist-get image :base64))))))

(provide 'kern-sidecar)
;;; kern-sidecar.el ends here
