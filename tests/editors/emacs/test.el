;;; test.el --- Runs inside the real Emacs, started by run.mjs -*- lexical-binding: t; -*-

(require 'package)
(when (< emacs-major-version 29)
  ;; Eglot is a package of Debian's for an Emacs that does not bring it.
  (add-to-list 'package-directory-list "/usr/share/emacs/site-lisp/elpa")
  (package-initialize))
(add-to-list 'load-path (getenv "PROSE_MODE"))
(require 'prose-mode)
(require 'flymake)

(defvar passed 0)
(defvar failed 0)
(defconst patience 60 "Seconds; only a hang meets it.")

(defmacro check (name &rest body)
  "Count and print whether BODY, described by NAME, gives non-nil."
  `(let ((found (condition-case problem (progn ,@body) (error (list 'failed problem)))))
     (if (and found (not (eq (car-safe found) 'failed)))
         (progn (setq passed (1+ passed))
                (princ (format "ok   %s%s\n" ,name (if (stringp found) (concat " -- " found) ""))))
       (setq failed (1+ failed))
       (princ (format "FAIL %s -- %S\n" ,name found)))))

(defun until (probe)
  "Wait until PROBE gives non-nil and return it."
  (let ((end (+ (float-time) patience)) found)
    (while (and (not (setq found (funcall probe))) (< (float-time) end))
      (accept-process-output nil 0.02))
    found))

(defun log-text ()
  (with-current-buffer (get-buffer-create "*prose runs*") (buffer-string)))

(setq eglot-sync-connect patience make-backup-files nil)

(defun serve (server file &optional trusted)
  "Open FILE with SERVER."
  (setq prose-server-command (list server "--stdio") prose-trusted trusted)
  (find-file file)
  (apply #'eglot (eglot--guess-contact)))

(princ (format "Emacs %s\n" emacs-version))

(serve (getenv "PROSE_SERVER") "broken.prose")
(check "the mode is for .prose files" (eq major-mode 'prose-mode))
(check "the server attaches" (until #'eglot-managed-p))
(check "an undefined agent is an error where it stands"
       (flymake-start)
       (let ((found (until (lambda () (car (seq-filter (lambda (each) (eq (flymake-diagnostic-type each) 'eglot-error))
                                                       (flymake-diagnostics)))))))
         (and found
              (equal (buffer-substring (flymake-diagnostic-beg found) (flymake-diagnostic-end found)) "reviewr")
              (flymake-diagnostic-text found))))
(check "words of the language have their colours"
       (font-lock-ensure)
       (goto-char (point-min))
       (search-forward "agent writer")
       (and (eq (get-text-property (- (point) 8) 'face) 'font-lock-keyword-face)
            (eq (get-text-property (- (point) 2) 'face) 'font-lock-type-face)))
(check "Tab below a head indents"
       (with-temp-buffer
         (prose-mode)
         (insert "if **good**:\nsession \"a\"\nelse:\nsession \"b\"")
         (indent-region (point-min) (point-max))
         (equal (buffer-string) "if **good**:\n  session \"a\"\nelse:\n  session \"b\"")))

(find-file "hello.prose")
(check "a simulated run goes to its end, unsaved text included"
       (until #'eglot-managed-p)
       (goto-char (point-max))
       (insert "\nsession \"One more\"\n")
       (prose-run-simulated)
       (and (until (lambda () (string-match-p "run_finished completed" (log-text))))
            (string-match-p "session_started One more" (log-text))))
(check "an untrusted run is refused in words"
       (let (said)
         (cl-letf (((symbol-function 'message) (lambda (text &rest rest) (push (apply #'format text rest) said))))
           (prose-run)
           (until (lambda () (seq-find (lambda (each) (string-match-p "not trusted" each)) said))))))
(eglot-shutdown (eglot-current-server))

(with-current-buffer "hello.prose" (set-buffer-modified-p nil) (kill-buffer))
(with-current-buffer "broken.prose" (set-buffer-modified-p nil) (kill-buffer))
(serve (getenv "PROSE_QUESTIONS") "hello.prose" t)
(defvar asked nil)
(check "an input is asked for in the minibuffer"
       (until #'eglot-managed-p)
       (cl-letf (((symbol-function 'read-string) (lambda (prompt &rest _) (setq asked prompt) "blue")))
         (prose--run "input")
         (and (until (lambda () (string-match-p "answered" (log-text)))) (string-match-p "Which one" asked))))
(check "a choice too"
       (cl-letf (((symbol-function 'completing-read) (lambda (_ options &rest _) (setq asked options) (car options))))
         (prose--run "choice")
         (until (lambda () (equal asked '("red" "green"))))))
(eglot-shutdown (eglot-current-server))

(princ (format "%d passed, %d failed\n" passed failed))
(kill-emacs (if (> failed 0) 1 0))
;;; test.el ends here
